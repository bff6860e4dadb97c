// A Clang plugin that compiles what kesco makes of a CUDA source: `clang++ -fplugin=libkesco.so app.cu`.
//
// In: a pass over a CUDA source, of the host or of one GPU architecture. Out: the same pass over the text that kesco
// has rewritten and proven, with kesco's diagnostics among Clang's own.
//
// 1. The first pass of a run of the driver asks `kesco`, which knows the driver's command, and leaves the answer for
//    the others (DriverRun.h). All passes compile the same text: either kesco's or the source, never one and the other.
// 2. The text takes the place of the main file's content in the source manager before the first token of it is read:
//    the plugin's action comes before the main one, whose consumer is made when all is set up and nothing is read yet.
//    The file keeps its name, its time and its place in dependencies. Directives lead the text's lines to the source's.
// 3. Diagnostics point into the source as it is in the file, which becomes a buffer of its own for that.
//
// Where kesco has no text, the source is compiled, and one line says why. Where passes might disagree, it is an error.

#include "DriverRun.h"

#include "clang/AST/ASTConsumer.h"
#include "clang/Basic/DiagnosticFrontend.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendPluginRegistry.h"
#include "clang/Lex/HeaderSearchOptions.h"
#include "clang/Lex/PreprocessorOptions.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Program.h"

#include <dlfcn.h>

using namespace clang;
using kesco::Agreement;

namespace {

constexpr int64_t Version = 1; // of the answer
constexpr char AnswerName[] = "answer.json", TextName[] = "text";

/// What the passes of a run compile, as `kesco clang-plugin` writes it (kesco/wrapper/plugin.py).
struct Answer {
    std::string Error;             // why this pass might compile another text than those before it
    std::string Why;               // why the source is compiled as it is, where that is worth a line
    std::string Last;              // the pass that comes last
    llvm::json::Array Diagnostics; // kesco's, for the pass that has asked
    std::unique_ptr<llvm::MemoryBuffer> Text;
};

llvm::Error read(const Agreement &Agreed, Answer &Into) {
    auto File = llvm::MemoryBuffer::getFile(Agreed.file(AnswerName));
    if (!File)
        return kesco::failure("cannot read " + Agreed.file(AnswerName) + ": " + File.getError().message());
    auto Parsed = llvm::json::parse((*File)->getBuffer());
    if (!Parsed)
        return Parsed.takeError();
    const llvm::json::Object *Object = Parsed->getAsObject();
    if (!Object || Object->getInteger("version") != Version)
        return kesco::failure("kesco and this plugin are not of the same version");
    Into.Error = Object->getString("error").value_or("").str();
    Into.Why = Object->getString("why").value_or("").str();
    Into.Last = Object->getString("last").value_or("").str();
    if (const llvm::json::Array *Found = Object->getArray("diagnostics"))
        Into.Diagnostics = *Found;
    if (Object->getBoolean("rewritten").value_or(false)) {
        auto Text = llvm::MemoryBuffer::getFile(Agreed.file(TextName));
        if (!Text)
            return kesco::failure("cannot read " + Agreed.file(TextName) + ": " + Text.getError().message());
        Into.Text = std::move(*Text);
    }
    return llvm::Error::success();
}

/// Write an answer that says why there is no text; false if that is not possible.
bool refuse(const Agreement &Agreed, llvm::StringRef Why) {
    llvm::json::Object Answer{{"version", Version}, {"rewritten", false}, {"why", llvm::json::fixUTF8(Why)}};
    return !llvm::errorToBool(llvm::writeToOutput(Agreed.file(AnswerName), [&](llvm::raw_ostream &Out) {
        Out << llvm::json::Value(std::move(Answer));
        return llvm::Error::success();
    }));
}

/// The file that this plugin was loaded from.
std::string plugin() {
    Dl_info Info;
    llvm::SmallString<256> Path;
    if (dladdr(reinterpret_cast<void *>(&plugin), &Info) && Info.dli_fname)
        (void)llvm::sys::fs::real_path(Info.dli_fname, Path);
    return Path.str().str();
}

/// `kesco`: named by the environment, or of the Python installation that the plugin belongs to, or the first on PATH.
std::string program() {
    if (const char *Asked = getenv("KESCO_PROGRAM"); Asked && *Asked)
        return Asked;
    std::string Path = plugin(); // PREFIX/lib/pythonX/site-packages/kesco/passes/libkesco.so
    llvm::StringRef Folder = llvm::sys::path::parent_path(Path);
    if (Folder.ends_with("/kesco/passes")) {
        for (int Up = 0; Up < 5; ++Up)
            Folder = llvm::sys::path::parent_path(Folder);
        llvm::SmallString<256> Beside(Folder);
        llvm::sys::path::append(Beside, "bin", "kesco");
        if (llvm::sys::path::is_absolute(Beside) && llvm::sys::fs::can_execute(Beside))
            return Beside.str().str();
    }
    auto Found = llvm::sys::findProgramByName("kesco");
    return Found ? *Found : "";
}

class Schedule : public PluginASTAction {
  protected:
    bool ParseArgs(const CompilerInstance &, const std::vector<std::string> &Given) override {
        Options = Given;
        return true;
    }

    // By then the preprocessor has the main file's number, but has not entered it.
    std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance &CI, llvm::StringRef) override {
        if (concerns(CI))
            compile(CI);
        return std::make_unique<ASTConsumer>();
    }

    ActionType getActionType() override { return AddBeforeMainAction; }

  private:
    std::vector<std::string> Options;

    static bool switchedOff() {
        const char *State = getenv("KESCO");
        std::string Word = State ? llvm::StringRef(State).trim().lower() : "";
        return Word == "off" || Word == "0" || Word == "no" || Word == "false";
    }

    static bool concerns(const CompilerInstance &CI) {
        const FrontendOptions &Frontend = CI.getFrontendOpts();
        if (!CI.getLangOpts().CUDA || CI.getLangOpts().HIP || Frontend.Inputs.size() != 1 || switchedOff())
            return false;
        switch (Frontend.ProgramAction) {
        case frontend::EmitAssembly:
        case frontend::EmitBC:
        case frontend::EmitCodeGenOnly:
        case frontend::EmitLLVM:
        case frontend::EmitLLVMOnly:
        case frontend::EmitObj:
        case frontend::ParseSyntaxOnly:
            return !Frontend.Inputs[0].isHeader();
        default:
            return false;
        }
    }

    /// Why no pass can have another text than its own input: then each has one of its own.
    static std::string noSource(const FrontendInputFile &Input) {
        if (Input.isPreprocessed())
            return "it has been preprocessed";
        return !Input.isFile() || Input.getFile() == "-" ? "it is no file" : "";
    }

    /// Why this pass cannot have the text.
    static llvm::StringRef obstacle(const CompilerInstance &CI) {
        if (!CI.getHeaderSearchOpts().VFSOverlayFiles.empty() || !CI.getPreprocessorOpts().RemappedFiles.empty() ||
            !CI.getPreprocessorOpts().RemappedFileBuffers.empty() || !CI.getFileSystemOpts().WorkingDir.empty())
            return "clang sees another file system than kesco";
        return "";
    }

    void compile(CompilerInstance &CI) {
        const bool Device = CI.getLangOpts().CUDAIsDevice;
        const FrontendInputFile &Input = CI.getFrontendOpts().Inputs[0];
        const llvm::StringRef Source = Input.isFile() ? Input.getFile() : "";
        std::string Why = noSource(Input);
        llvm::Expected<kesco::Process> Driver = kesco::driver();
        if (!Driver)
            Why = llvm::toString(Driver.takeError());
        if (!Why.empty()) {
            if (!Device) // which comes once
                asItIs(CI, Source, Why);
            return;
        }
        llvm::Expected<Agreement> Agreed = Agreement::open(*Driver, Source);
        if (!Agreed)
            return disagree(CI, llvm::toString(Agreed.takeError()));
        const std::string Pass = Device ? CI.getTargetOpts().CPU : "host";
        const llvm::StringRef Obstacle = obstacle(CI);
        const bool Asking = !llvm::sys::fs::exists(Agreed->file(AnswerName));
        if (Asking && !(Obstacle.empty() ? ask(*Agreed, Driver->Pid, Source, Pass) : refuse(*Agreed, Obstacle)))
            return disagree(CI, "cannot write to " + Agreed->folder());
        Answer Found;
        if (llvm::Error Problem = read(*Agreed, Found))
            return disagree(CI, llvm::toString(std::move(Problem)));
        if (Found.Last == Pass)
            Agreed->remove();
        if (!Found.Error.empty())
            return report(CI, diag::err_fe_backend_plugin, SourceLocation(), Found.Error);
        if (Found.Text && !Obstacle.empty())
            return disagree(CI, Obstacle);
        if (Asking)
            tell(CI, Source, Found);
        if (Found.Text)
            replace(CI, std::move(Found.Text));
    }

    /// Have kesco write the answer; where it does not, write one that says so. False if neither is possible.
    bool ask(const Agreement &Agreed, pid_t Driver, llvm::StringRef Source, llvm::StringRef Pass) const {
        std::string Program = program(), Plugin = plugin(), Said = Agreed.file("said"), Problem;
        std::string Number = std::to_string(Driver);
        if (Program.empty())
            return refuse(Agreed, "there is no kesco on PATH; set KESCO_PROGRAM [K704]");
        llvm::SmallVector<llvm::StringRef, 16> Words{Program, "clang-plugin"};
        Words.append({"--driver", Number, "--pass", Pass, "--source", Source});
        Words.append({"--answer", Agreed.folder(), "--plugin", Plugin, "--"});
        Words.append(Options.begin(), Options.end());
        unsigned Seconds = 120; // which kesco keeps to by itself
        if (const char *Limit = getenv("KESCO_TIMEOUT"))
            if (double Given; !llvm::StringRef(Limit).getAsDouble(Given) && Given > 0 && Given < 1e6)
                Seconds = static_cast<unsigned>(Given);
        std::optional<llvm::StringRef> Redirects[] = {llvm::StringRef(), llvm::StringRef(), llvm::StringRef(Said)};
        int Status = llvm::sys::ExecuteAndWait(Program, Words, std::nullopt, Redirects, 2 * Seconds + 60, 0, &Problem);
        if (Status == 0 && llvm::sys::fs::exists(Agreed.file(AnswerName)))
            return true;
        if (Problem.empty()) {
            std::string All = kesco::systemFile(Said);
            Problem = llvm::StringRef(All).trim().rsplit('\n').second.str();
            if (Problem.empty())
                Problem = llvm::StringRef(All).trim().str();
        }
        return refuse(Agreed,
                      "kesco itself failed: " + (Problem.empty() ? "status " + std::to_string(Status) : Problem));
    }

    // ---- the text
    // ----------------------------------------------------------------------------------------------------

    /// Let `Text` be what the main file holds.
    static void replace(CompilerInstance &CI, std::unique_ptr<llvm::MemoryBuffer> Text) {
        SourceManager &Manager = CI.getSourceManager();
        OptionalFileEntryRef Main = Manager.getFileEntryRefForID(Manager.getMainFileID());
        if (!Main)
            return disagree(CI, "the source is no file");
        Manager.overrideFileContents(*Main, std::move(Text));
        // A number has as many locations as the file had bytes when it was given out: the text needs its own.
        Manager.setMainFileID(Manager.createFileID(*Main, SourceLocation(), SrcMgr::C_User));
    }

    // ---- what is told
    // ------------------------------------------------------------------------------------------------

    static void report(CompilerInstance &CI, unsigned Id, SourceLocation At, llvm::StringRef Message) {
        CI.getDiagnostics().Report(At, Id) << Message;
    }

    /// Passes could compile different texts: better none.
    static void disagree(CompilerInstance &CI, llvm::StringRef Why) {
        report(CI, diag::err_fe_backend_plugin, SourceLocation(),
               ("kesco cannot make all passes compile the same text [K705]: " + Why + "; KESCO=off compiles without it")
                   .str());
    }

    /// A line that -Werror does not turn into an error: the build does not depend on kesco.
    static void asItIs(CompilerInstance &CI, llvm::StringRef Source, llvm::StringRef Why) {
        DiagnosticsEngine &Engine = CI.getDiagnostics();
        Engine.Report(Engine.getCustomDiagID(DiagnosticsEngine::Remark, "%0: compiled as it is [K701]: %1"))
            << Source << Why;
    }

    void tell(CompilerInstance &CI, llvm::StringRef Source, const Answer &Found) {
        if (!Found.Why.empty())
            asItIs(CI, Source, Found.Why);
        Places Where(CI, Source);
        for (const llvm::json::Value &One : Found.Diagnostics) {
            const llvm::json::Object *Object = One.getAsObject();
            if (!Object)
                continue;
            bool Remark = Object->getString("severity") == llvm::StringRef("remark");
            std::string Code = Object->getString("code").value_or("").str();
            report(CI, Remark ? diag::remark_fe_backend_plugin : diag::warn_fe_backend_plugin, Where.of(*Object),
                   message(*Object).str() + (Code.empty() ? "" : " [" + Code + "]"));
            if (const llvm::json::Array *Notes = Object->getArray("notes"))
                for (const llvm::json::Value &Note : *Notes)
                    if (const llvm::json::Object *Inside = Note.getAsObject())
                        report(CI, diag::note_fe_backend_plugin, Where.of(*Inside), message(*Inside));
            if (llvm::StringRef Help = Object->getString("help").value_or(""); !Help.empty())
                report(CI, diag::note_fe_backend_plugin, SourceLocation(), ("help: " + Help).str());
        }
    }

    static llvm::StringRef message(const llvm::json::Object &Object) {
        return Object.getString("message").value_or("");
    }

    /// Where diagnostics point to: the source as it is in the file, and other files.
    class Places {
      public:
        Places(CompilerInstance &CI, llvm::StringRef Source) : CI(CI), Source(Source) {}

        SourceLocation of(const llvm::json::Object &Object) {
            auto File = Object.getString("file");
            auto Line = Object.getInteger("line"), Column = Object.getInteger("column");
            if (!File || !Line || !Column || *Line < 1 || *Column < 1)
                return SourceLocation();
            auto [At, New] = Known.try_emplace(*File);
            if (New)
                At->second = number(*File);
            return At->second.isValid() ? CI.getSourceManager().translateLineCol(At->second, *Line, *Column)
                                        : SourceLocation();
        }

      private:
        CompilerInstance &CI;
        llvm::StringRef Source;
        llvm::StringMap<FileID> Known;

        FileID number(llvm::StringRef Name) {
            SourceManager &Manager = CI.getSourceManager();
            if (Name == Source) { // the file itself is about to have another content
                auto Content = llvm::MemoryBuffer::getFile(Name);
                return Content ? Manager.createFileID(std::move(*Content)) : FileID();
            }
            auto File = CI.getFileManager().getFileRef(Name);
            if (!File) {
                llvm::consumeError(File.takeError());
                return FileID();
            }
            return Manager.getOrCreateFileID(*File, SrcMgr::C_User);
        }
    };
};

FrontendPluginRegistry::Add<Schedule> Registered("kesco", "compile what kesco makes of a CUDA source");

} // namespace
