// Calls of a runtime's hooks around every kernel launch of a translation unit (kesco/runtime/hooks/launch_hooks.h).
//
// In: host IR as Clang makes it of CUDA, before anything is inlined. Out: the same with two calls a launch, each behind
// a test of a weak symbol, and a constant that describes the launch in the section `kesco_launches`.
//
// 1. A launch is a call of `cudaLaunchKernel`, of its form for per-thread streams, or of `cudaLaunchKernelExC`.
// 2. `k<<<...>>>(...)` becomes a call of a stub, which does the launch. There the hooks stand around the launch in the
//    stub, which has all of its values, and the place is that of the call: the stub gets a parameter-free slot for it,
//    a thread-local variable that each call of the stub sets. So launches in headers and templates are seen as well,
//    and so are those through a pointer to the stub.
//
// Launches by the driver's interface (cuLaunchKernel) and those of graphs are left alone.

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace {

constexpr unsigned Version = 1;
constexpr char Section[] = "kesco_launches";
constexpr char Slot[] = "kesco_launch_site";

enum class Form { None, Plain, Extended };

Form formOf(const CallBase &Call) {
    const Function *Callee = Call.getCalledFunction();
    if (!Callee)
        return Form::None;
    return StringSwitch<Form>(Callee->getName())
        .Case("cudaLaunchKernel", Form::Plain)
        .Case("cudaLaunchKernel_ptsz", Form::Plain)
        .Case("cudaLaunchKernelExC", Form::Extended)
        .Case("cudaLaunchKernelExC_ptsz", Form::Extended)
        .Default(Form::None);
}

class Hooks {
  public:
    explicit Hooks(Module &M) : M(M), Context(M.getContext()), Layout(M.getDataLayout()) {
        Pointer = PointerType::get(Context, 0);
        Word = Type::getInt32Ty(Context);
        Size = Layout.getIntPtrType(Context);
        SiteType = StructType::get(Context, {Word, Word, Pointer, Pointer, Word, Word, Pointer});
        Type *Three = ArrayType::get(Word, 3);
        LaunchType = StructType::get(Context, {Pointer, Three, Three, Size, Pointer});
    }

    bool run() {
        SmallVector<CallBase *> Launches;
        for (Function &F : M)
            for (BasicBlock &Block : F)
                for (Instruction &One : Block)
                    if (auto *Call = dyn_cast<CallBase>(&One))
                        if (formOf(*Call) != Form::None)
                            Launches.push_back(Call);
        for (CallBase *Launch : Launches)
            around(*Launch);
        if (!Sites.empty())
            appendToCompilerUsed(M, Sites);
        return !Launches.empty();
    }

  private:
    Module &M;
    LLVMContext &Context;
    const DataLayout &Layout;
    PointerType *Pointer;
    Type *Word, *Size;
    StructType *SiteType, *LaunchType;
    SmallVector<GlobalValue *> Sites;

    // Whether a function is the stub of a kernel: it launches itself, or the handle that stands for it.
    static bool isStub(const Function &F, const CallBase &Launch) {
        return F.getName().contains("__device_stub__") || Launch.getArgOperand(0)->stripPointerCasts() == &F;
    }

    Constant *text(StringRef Text) {
        IRBuilder<> Builder(Context);
        auto *Made = new GlobalVariable(M, ArrayType::get(Type::getInt8Ty(Context), Text.size() + 1), true,
                                        GlobalValue::PrivateLinkage, ConstantDataArray::getString(Context, Text));
        Made->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
        return Made;
    }

    // The constant that describes a launch at the place of `Call`.
    GlobalVariable *site(const CallBase &Call, StringRef Kernel) {
        std::string File;
        unsigned Line = 0, Column = 0;
        if (const DILocation *At = Call.getDebugLoc().get()) {
            Line = At->getLine(), Column = At->getColumn();
            File = At->getFilename().str();
            if (!At->getDirectory().empty() && !StringRef(File).starts_with("/"))
                File = (At->getDirectory() + "/" + File).str();
        }
        Constant *Init = ConstantStruct::get(SiteType, {number(Version), number(Layout.getTypeAllocSize(SiteType)),
                                                        text(Kernel), text(File), number(Line), number(Column),
                                                        text(Call.getFunction()->getName())});
        auto *Made = new GlobalVariable(M, SiteType, true, GlobalValue::PrivateLinkage, Init, "kesco_site");
        Made->setSection(Section);
        Made->setAlignment(Align(8));
        Sites.push_back(Made);
        return Made;
    }

    Constant *number(uint64_t Value) { return ConstantInt::get(Word, Value); }

    GlobalVariable *slot() {
        if (GlobalVariable *Known = M.getNamedGlobal(Slot))
            return Known;
        // One for all files: the linker keeps only one body of a template's stub, which may be that of another file.
        auto *Made =
            new GlobalVariable(M, Pointer, false, GlobalValue::LinkOnceODRLinkage, ConstantPointerNull::get(Pointer),
                               Slot, nullptr, GlobalValue::GeneralDynamicTLSModel);
        if (Triple(M.getTargetTriple()).supportsCOMDAT())
            Made->setComdat(M.getOrInsertComdat(Slot));
        return Made;
    }

    Function *hook(StringRef Name) {
        auto *Type = FunctionType::get(Type::getVoidTy(Context), {Pointer, Pointer}, false);
        auto *Found = cast<Function>(M.getOrInsertFunction(Name, Type).getCallee());
        if (Found->isDeclaration())
            Found->setLinkage(GlobalValue::ExternalWeakLinkage);
        Found->setDoesNotThrow();
        return Found;
    }

    void around(CallBase &Launch) {
        Function &F = *Launch.getFunction();
        Value *Site = nullptr;
        GlobalVariable *Own = site(Launch, kernel(Launch, F));
        if (isStub(F, Launch)) {
            for (Use &One : F.uses())
                if (auto *Call = dyn_cast<CallBase>(One.getUser()); Call && Call->isCallee(&One))
                    IRBuilder<>(Call).CreateStore(site(*Call, F.getName()), slot());
            IRBuilder<> Builder(&Launch);
            Value *Known = Builder.CreateLoad(Pointer, slot());
            Builder.CreateStore(ConstantPointerNull::get(Pointer), slot());
            Site = Builder.CreateSelect(Builder.CreateIsNull(Known), Own, Known);
        } else {
            Site = Own;
        }
        IRBuilder<> AtEntry(&F.getEntryBlock(), F.getEntryBlock().getFirstInsertionPt());
        Value *Record = AtEntry.CreateAlloca(LaunchType, nullptr, "kesco_launch");
        Instruction *Then = when(hook("kesco_launch_before"), &Launch);
        IRBuilder<> Builder(Then);
        fill(Builder, Launch, Record);
        Builder.CreateCall(hook("kesco_launch_before"), {Site, Record});

        Instruction *Behind = Launch.getNextNode();
        if (auto *Invoke = dyn_cast<InvokeInst>(&Launch)) {
            BasicBlock *Normal = SplitEdge(Invoke->getParent(), Invoke->getNormalDest());
            Behind = &*Normal->getFirstInsertionPt();
        }
        Then = when(hook("kesco_launch_after"), Behind);
        IRBuilder<> After(Then);
        fill(After, Launch, Record);
        After.CreateCall(hook("kesco_launch_after"), {Site, Record});
    }

    static std::string kernel(const CallBase &Launch, const Function &F) {
        if (isStub(F, Launch))
            return F.getName().str();
        const Value *Given = Launch.getArgOperand(formOf(Launch) == Form::Plain ? 0 : 1)->stripPointerCasts();
        return isa<GlobalValue>(Given) ? Given->getName().str() : "";
    }

    // A branch to new code in front of `Before`, taken where a weak symbol is defined: hardly ever, says its weight.
    Instruction *when(Function *Hook, Instruction *Before) {
        IRBuilder<> Builder(Before);
        Value *There = Builder.CreateIsNotNull(Hook);
        return SplitBlockAndInsertIfThen(There, Before, false, MDBuilder(Context).createBranchWeights(1, 1000));
    }

    void put(IRBuilder<> &Builder, Value *Record, ArrayRef<unsigned> Path, Value *What) {
        SmallVector<Value *> Indices{Builder.getInt32(0)};
        for (unsigned One : Path)
            Indices.push_back(Builder.getInt32(One));
        Builder.CreateStore(What, Builder.CreateInBoundsGEP(LaunchType, Record, Indices));
    }

    // A dim3 as Clang passes it: x and y in one integer of 64 bits, z in the next argument.
    void putSize(IRBuilder<> &Builder, Value *Record, unsigned Field, Value *XY, Value *Z) {
        put(Builder, Record, {Field, 0}, Builder.CreateTrunc(XY, Word));
        put(Builder, Record, {Field, 1}, Builder.CreateTrunc(Builder.CreateLShr(XY, 32), Word));
        put(Builder, Record, {Field, 2}, Z);
    }

    void fill(IRBuilder<> &Builder, CallBase &Launch, Value *Record) {
        Builder.CreateStore(Constant::getNullValue(LaunchType), Record);
        if (formOf(Launch) == Form::Plain) {
            put(Builder, Record, {0}, Launch.getArgOperand(0));
            if (Launch.arg_size() != 8 || !Launch.getArgOperand(1)->getType()->isIntegerTy(64))
                return; // another ABI
            putSize(Builder, Record, 1, Launch.getArgOperand(1), Launch.getArgOperand(2));
            putSize(Builder, Record, 2, Launch.getArgOperand(3), Launch.getArgOperand(4));
            put(Builder, Record, {3}, Launch.getArgOperand(6));
            put(Builder, Record, {4}, Launch.getArgOperand(7));
            return;
        }
        // cudaLaunchConfig_t begins with two dim3, the size of shared memory and the stream.
        Value *Config = Launch.getArgOperand(0);
        auto *From = StructType::get(Context, {ArrayType::get(Word, 3), ArrayType::get(Word, 3), Size, Pointer});
        put(Builder, Record, {0}, Launch.getArgOperand(1));
        for (unsigned Field = 0; Field < 4; ++Field)
            put(Builder, Record, {Field + 1},
                Builder.CreateLoad(From->getElementType(Field), Builder.CreateStructGEP(From, Config, Field)));
    }
};

struct LaunchHooks : PassInfoMixin<LaunchHooks> {
    PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
        if (Triple(M.getTargetTriple()).isNVPTX() || !Hooks(M).run())
            return PreservedAnalyses::all();
        return PreservedAnalyses::none();
    }
    static bool isRequired() { return true; }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "LaunchHooks", "1", [](PassBuilder &Builder) {
                Builder.registerPipelineParsingCallback(
                    [](StringRef Name, ModulePassManager &Passes, ArrayRef<PassBuilder::PipelineElement>) {
                        if (Name != "launch-hooks")
                            return false;
                        Passes.addPass(LaunchHooks());
                        return true;
                    });
                // Before anything is inlined, while a call of a stub is still at the place of the launch.
                Builder.registerPipelineStartEPCallback(
                    [](ModulePassManager &Passes, OptimizationLevel) { Passes.addPass(LaunchHooks()); });
            }};
}
