// What each kernel of a device module does to memory, as JSON (docs/plugins.md has the schema).
//
// In: device IR. Out: for each kernel and pointer parameter how it is accessed and, where that can be shown, a
// footprint: the bytes that all threads of a launch touch at most, from where the pointer points. The module is left as
// it is.
//
// 1. Follow each pointer parameter through address arithmetic, choices and calls of functions with a body; what is done
//    with it decides the access mode. Whatever is not understood makes the parameter "escape".
// 2. Of each access take ScalarEvolution's expression of the address, less the parameter, and bound it: loop counters
// by
//    where they start and how often the loop goes around, anything by the comparisons that dominate the access.
// 3. A bound that holds only if the kernel's arithmetic does not wrap around comes with that condition ("fits").

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "Polynomial.h"

using namespace llvm;
using kesco::Bound;
using kesco::Poly;

namespace {

// ---- access modes ---------------------------------------------------------------------------------------------------

struct Effect {
    bool Reads = false, Writes = false, Escapes = false, Deep = false;
    void operator|=(const Effect &Other) {
        Reads |= Other.Reads, Writes |= Other.Writes, Escapes |= Other.Escapes, Deep |= Other.Deep;
    }
};

bool isSilent(const CallBase &Call) {
    const auto *Known = dyn_cast<IntrinsicInst>(&Call);
    return Known && (Known->isLifetimeStartOrEnd() || Known->isAssumeLikeIntrinsic());
}

class Modes {
  public:
    Effect of(const Argument &Parameter) {
        auto [At, New] = Known.try_emplace(&Parameter);
        if (!New)
            return At->second; // recursion adds nothing that the first visit does not find
        Effect Found;
        SmallVector<const Value *> Work{&Parameter};
        SmallPtrSet<const Value *, 16> Seen;
        while (!Work.empty()) {
            const Value *Pointer = Work.pop_back_val();
            if (!Seen.insert(Pointer).second)
                continue;
            for (const Use &One : Pointer->uses())
                Found |= ofUse(One, Work);
        }
        return Known[&Parameter] = Found;
    }

  private:
    std::map<const Argument *, Effect> Known;

    Effect ofUse(const Use &One, SmallVectorImpl<const Value *> &Work) {
        Effect Found;
        const auto *User = dyn_cast<Instruction>(One.getUser());
        if (!User) {
            Found.Escapes = true;
        } else if (isa<GetElementPtrInst, AddrSpaceCastInst, PHINode, SelectInst, FreezeInst>(User)) {
            Work.push_back(User);
        } else if (isa<LoadInst>(User)) {
            Found.Reads = true;
            Found.Deep = User->getType()->isPointerTy();
        } else if (const auto *Store = dyn_cast<StoreInst>(User)) {
            (One.getOperandNo() == Store->getPointerOperandIndex() ? Found.Writes : Found.Escapes) = true;
        } else if (isa<AtomicRMWInst, AtomicCmpXchgInst>(User)) {
            (One.getOperandNo() == 0 ? Found.Reads : Found.Escapes) = true;
            Found.Writes = Found.Reads;
        } else if (const auto *Call = dyn_cast<CallBase>(User)) {
            Found = ofCall(*Call, One);
        } else if (!isa<ICmpInst>(User)) {
            Found.Escapes = true;
        }
        return Found;
    }

    Effect ofCall(const CallBase &Call, const Use &One) {
        Effect Found;
        if (isSilent(Call))
            return Found;
        if (!Call.isArgOperand(&One)) {
            Found.Escapes = true;
            return Found;
        }
        unsigned Index = Call.getArgOperandNo(&One);
        const Function *Callee = Call.getCalledFunction();
        if (Callee && !Callee->isDeclaration() && Callee->hasExactDefinition() && Index < Callee->arg_size())
            return of(*Callee->getArg(Index));
        if (!Call.doesNotCapture(Index) || Call.getType()->isPointerTy()) {
            Found.Escapes = true;
        } else if (!Call.doesNotAccessMemory(Index)) {
            Found.Reads = !Call.onlyWritesMemory(Index);
            Found.Writes = !Call.onlyReadsMemory(Index) && !Call.onlyReadsMemory();
        }
        return Found;
    }
};

// ---- footprints -----------------------------------------------------------------------------------------------------

struct Range {
    std::optional<Bound> Low, High;
};

class Footprints {
  public:
    Footprints(ScalarEvolution &SE, const DominatorTree &DT) : SE(SE), DT(DT) {}

    // The range of what an access through a pointer touches behind `Base`, or nothing.
    Range ofAccess(const Value *Pointer, const Value *Base, uint64_t Width, const Instruction &At) {
        const SCEV *Address = SE.getSCEV(const_cast<Value *>(Pointer));
        if (SE.getPointerBase(Address) != SE.getSCEV(const_cast<Value *>(Base)))
            return {};
        Work = 2000;
        Range Found = signedRange(SE.removePointerBase(Address), At);
        if (Found.High)
            Found.High->At += Poly(int64_t(Width));
        return Found;
    }

  private:
    ScalarEvolution &SE;
    const DominatorTree &DT;
    int Work = 0;

    static unsigned bits(const SCEV *S) { return S->getType()->getIntegerBitWidth(); }

    // The bounds of an expression as a signed integer where control is at `At`.
    Range signedRange(const SCEV *S, const Instruction &At) {
        if (--Work < 0 || !S->getType()->isIntegerTy())
            return {};
        Range Made = made(S, At);
        told(S, At, Made);
        return Made;
    }

    Range made(const SCEV *S, const Instruction &At) {
        if (const auto *Constant = dyn_cast<SCEVConstant>(S)) {
            if (Constant->getAPInt().getSignificantBits() > 62)
                return {};
            Bound Exact(Poly(Constant->getAPInt().getSExtValue()));
            return {Exact, Exact};
        }
        if (const auto *Unknown = dyn_cast<SCEVUnknown>(S))
            return leaf(Unknown->getValue());
        if (const auto *Wider = dyn_cast<SCEVSignExtendExpr>(S))
            return signedRange(Wider->getOperand(), At);
        if (const auto *Wider = dyn_cast<SCEVZeroExtendExpr>(S)) {
            Range Inner = signedRange(Wider->getOperand(), At);
            if (!Inner.Low || Inner.Low->At.lowest() < 0)
                return {Bound(Poly()), std::nullopt};
            return Inner;
        }
        if (const auto *Sum = dyn_cast<SCEVAddExpr>(S))
            return sum(Sum, At);
        if (const auto *Product = dyn_cast<SCEVMulExpr>(S))
            return product(Product, At);
        if (const auto *Counter = dyn_cast<SCEVAddRecExpr>(S))
            return counter(Counter);
        return {};
    }

    static Range leaf(const Value *V) {
        if (const auto *Parameter = dyn_cast<Argument>(V)) {
            Bound Exact(Poly::symbol(kesco::argument(Parameter->getArgNo(), V->getType()->getIntegerBitWidth())));
            return {Exact, Exact};
        }
        const auto *Call = dyn_cast<CallBase>(V);
        const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
        StringRef Name = Callee ? Callee->getName() : "";
        if (!Name.consume_front("llvm.nvvm.read.ptx.sreg."))
            return {};
        auto [Register, Axis] = Name.split('.');
        if (Axis.size() != 1 || Axis[0] < 'x' || Axis[0] > 'z')
            return {};
        if (Register == "ntid" || Register == "nctaid") {
            Bound Exact(Poly::symbol(kesco::dimension(Register == "nctaid", Axis[0])));
            return {Exact, Exact};
        }
        if (Register != "tid" && Register != "ctaid")
            return {};
        Poly Most = Poly::symbol(kesco::dimension(Register == "ctaid", Axis[0]));
        Most += Poly(-1);
        return {Bound(Poly()), Bound(Most)};
    }

    Range sum(const SCEVAddExpr *S, const Instruction &At) {
        Range Found{Bound(Poly()), Bound(Poly())};
        for (const SCEV *Part : S->operands()) {
            Range One = signedRange(Part, At);
            if (!One.Low)
                Found.Low.reset();
            if (!One.High)
                Found.High.reset();
            if (Found.Low)
                Found.Low->add(*One.Low);
            if (Found.High)
                Found.High->add(*One.High);
        }
        return S->hasNoSignedWrap() ? Found : fitting(Found, bits(S));
    }

    Range product(const SCEVMulExpr *S, const Instruction &At) {
        Range Found{Bound(Poly(1)), Bound(Poly(1))};
        if (const auto *Factor = dyn_cast<SCEVConstant>(S->getOperand(0))) { // of either sign
            if (S->getNumOperands() != 2 || Factor->getAPInt().getSignificantBits() > 31)
                return {};
            int64_t Number = Factor->getAPInt().getSExtValue();
            Found = signedRange(S->getOperand(1), At);
            if (Number < 0)
                std::swap(Found.Low, Found.High);
            if (Found.Low)
                Found.Low->At *= Poly(Number);
            if (Found.High)
                Found.High->At *= Poly(Number);
        } else {
            for (const SCEV *Part : S->operands()) {
                Range One = signedRange(Part, At);
                std::optional<Bound> Zero = notNegative(Part, One, At);
                if (!Zero || !One.High || !Found.High)
                    return {};
                Found.Low->needs(*Zero);
                Found.High->needs(*Zero);
                Found.High->At *= One.High->At;
                Found.High->needs(*One.High);
            }
            Found.Low->At = Poly();
        }
        return S->hasNoSignedWrap() ? Found : fitting(Found, bits(S));
    }

    // A bound of 0 from below, with what it needs; an exact number may also be known to be positive by a comparison.
    std::optional<Bound> notNegative(const SCEV *S, const Range &Known, const Instruction &At) {
        if (Known.Low && Known.Low->At.lowest() >= 0)
            return Known.Low;
        std::optional<Bound> Found;
        facts(At, [&](ICmpInst::Predicate Relation, const SCEV *Left, const SCEV *Right) {
            if (Left != S || (Relation != ICmpInst::ICMP_SGT && Relation != ICmpInst::ICMP_SGE))
                return;
            Range There = made(Right, At);
            if (There.Low && There.Low->At.lowest() >= 0)
                Found = There.Low;
        });
        return Found;
    }

    Range counter(const SCEVAddRecExpr *S) {
        if (!S->isAffine())
            return {};
        const Loop *Around = S->getLoop();
        const BasicBlock *Before = Around->getLoopPreheader();
        if (!Before)
            return {};
        const Instruction &There = *Before->getTerminator();
        Range Start = signedRange(S->getStart(), There), Step = signedRange(S->getStepRecurrence(SE), There);
        if (!Start.Low || !Step.Low || Step.Low->At.lowest() < 0)
            return {};
        Range Found;
        const SCEV *Times = SE.getBackedgeTakenCount(Around);
        if (!isa<SCEVCouldNotCompute>(Times) && Times->getType() == S->getType() && Start.High && Step.High &&
            Step.High->At.constant()) {
            Range Rounds = signedRange(Times, There);
            if (Rounds.High) {
                Found.High = Start.High;
                Rounds.High->At *= Step.High->At;
                Found.High->add(*Rounds.High);
            }
        }
        if (!S->hasNoSignedWrap())
            return Found; // from below only where it cannot come around again
        Found.Low = Start.Low;
        Found.Low->needs(*Step.Low);
        return Found;
    }

    // Calls `Use(relation, left, right)` for each comparison that holds whenever control is at `At`.
    template <typename F> void facts(const Instruction &At, F Use) {
        const DomTreeNode *Node = DT.getNode(At.getParent());
        for (; Node && Node->getIDom(); Node = Node->getIDom()) {
            const BasicBlock *Block = Node->getBlock(), *Source = Block->getSinglePredecessor();
            // Conditional branches are a class of their own from LLVM 23 on; successors and condition are the same.
            const auto *Branch = Source ? dyn_cast<BranchInst>(Source->getTerminator()) : nullptr;
            if (!Branch || !Branch->isConditional() || Branch->getSuccessor(0) == Branch->getSuccessor(1))
                continue;
            hold(Branch->getCondition(), Branch->getSuccessor(0) == Block, Use, 8);
        }
    }

    template <typename F> void hold(const Value *Condition, bool True, F &Use, int Depth) {
        if (!Depth)
            return;
        if (const auto *Compare = dyn_cast<ICmpInst>(Condition)) {
            if (!Compare->getOperand(0)->getType()->isIntegerTy())
                return;
            auto Relation = True ? Compare->getPredicate() : Compare->getInversePredicate();
            const SCEV *Left = SE.getSCEV(Compare->getOperand(0)), *Right = SE.getSCEV(Compare->getOperand(1));
            Use(Relation, Left, Right);
            Use(ICmpInst::getSwappedPredicate(Relation), Right, Left);
            return;
        }
        const auto *Both = dyn_cast<Instruction>(Condition);
        if (!Both)
            return;
        if (Both->getOpcode() == (True ? Instruction::And : Instruction::Or)) {
            for (const Value *Part : Both->operands())
                hold(Part, True, Use, Depth - 1);
        } else if (const auto *Choice = dyn_cast<SelectInst>(Both)) {
            const auto *Fixed = dyn_cast<ConstantInt>(True ? Choice->getFalseValue() : Choice->getTrueValue());
            if (!Fixed || Fixed->isOne() == True)
                return;
            hold(Choice->getCondition(), True, Use, Depth - 1);
            hold(True ? Choice->getTrueValue() : Choice->getFalseValue(), True, Use, Depth - 1);
        }
    }

    // Bounds from comparisons of the very expression replace those from how it was made, if those are not simpler.
    void told(const SCEV *S, const Instruction &At, Range &Made) {
        facts(At, [&](ICmpInst::Predicate Relation, const SCEV *Left, const SCEV *Right) {
            if (Left != S)
                return;
            bool Positive = Made.Low && Made.Low->At.lowest() >= 0;
            bool Strict = ICmpInst::isLT(Relation) || ICmpInst::isGT(Relation);
            Range There = made(Right, At);
            if (ICmpInst::isSigned(Relation) && (ICmpInst::isLT(Relation) || ICmpInst::isLE(Relation)) && There.High) {
                if (Strict)
                    There.High->At += Poly(-1);
                if (!Made.High || There.High->simplerThan(*Made.High))
                    Made.High = There.High;
            } else if (ICmpInst::isUnsigned(Relation) && (ICmpInst::isLT(Relation) || ICmpInst::isLE(Relation))) {
                // Both are below the sign bit: the left by its own bounds, the right because it is an argument read so.
                std::optional<Bound> High = unsignedHigh(Right);
                if (!Positive || !High)
                    return;
                if (Strict)
                    High->At += Poly(-1);
                High->needs(*Made.Low);
                if (!Made.High || High->simplerThan(*Made.High))
                    Made.High = High;
            } else if (ICmpInst::isSigned(Relation) && (ICmpInst::isGT(Relation) || ICmpInst::isGE(Relation)) &&
                       There.Low) {
                if (!Made.Low && !Made.High) {
                    if (Strict)
                        There.Low->At += Poly(1);
                    Made.Low = There.Low;
                }
            }
        });
    }

    static std::optional<Bound> unsignedHigh(const SCEV *S) {
        const auto *Unknown = dyn_cast<SCEVUnknown>(S);
        const auto *Parameter = Unknown ? dyn_cast<Argument>(Unknown->getValue()) : nullptr;
        if (!Parameter)
            return std::nullopt;
        unsigned Width = Parameter->getType()->getIntegerBitWidth();
        return Bound(Poly::symbol(kesco::argument(Parameter->getArgNo(), Width, false)));
    }

    // The range of a result that may wrap around: it holds where both ends fit.
    static Range fitting(Range Found, unsigned Bits) {
        if (!Found.Low || !Found.High || Bits > 64)
            return {};
        __int128 Most = (__int128(1) << (Bits - 1)) - 1;
        Bound Fits = *Found.Low;
        Fits.needs(*Found.High);
        if (Found.Low->At.lowest() < -Most - 1) {
            Poly Below = Found.Low->At;
            Below *= Poly(-1);
            Fits.need(Below, Most);
        }
        if (Found.High->At.highest() > Most)
            Fits.need(Found.High->At, Most);
        Found.Low->needs(Fits);
        Found.High->needs(Fits);
        return Found;
    }
};

// ---- the pass -------------------------------------------------------------------------------------------------------

// One range around all accesses through a parameter; nothing where none is known to be.
std::optional<json::Value> footprint(Argument &Parameter, Footprints &Ask, const DataLayout &Layout) {
    std::vector<Range> Found;
    SmallVector<Value *> Work{&Parameter};
    while (!Work.empty()) {
        Value *Pointer = Work.pop_back_val();
        for (const Use &One : Pointer->uses()) {
            auto *User = cast<Instruction>(One.getUser());
            if (isa<GetElementPtrInst, AddrSpaceCastInst>(User)) {
                Work.push_back(User);
                continue;
            }
            if (isa<ICmpInst>(User) || (isa<CallBase>(User) && isSilent(cast<CallBase>(*User))))
                continue;
            Type *Touched = nullptr;
            if (isa<LoadInst>(User))
                Touched = User->getType();
            if (auto *Store = dyn_cast<StoreInst>(User))
                Touched = One.getOperandNo() == 1 ? Store->getValueOperand()->getType() : nullptr;
            if (isa<AtomicRMWInst, AtomicCmpXchgInst>(User) && One.getOperandNo() == 0)
                Touched = User->getOperand(1)->getType();
            if (!Touched)
                return std::nullopt;
            Found.push_back(Ask.ofAccess(Pointer, &Parameter, Layout.getTypeStoreSize(Touched), *User));
            if (!Found.back().Low || !Found.back().High)
                return std::nullopt;
        }
    }
    for (const Range &Low : Found) {
        for (const Range &High : Found) {
            bool Around = all_of(Found, [&](const Range &Each) {
                return Each.Low->At.minus(Low.Low->At).lowest() >= 0 &&
                       High.High->At.minus(Each.High->At).lowest() >= 0;
            });
            if (!Around)
                continue;
            Bound Fits = *Low.Low;
            for (const Range &Each : Found)
                Fits.needs(*Each.Low), Fits.needs(*Each.High);
            return json::Object{
                {"low", Low.Low->At.json()}, {"high", High.High->At.json()}, {"fits", Fits.conditions()}};
        }
    }
    return std::nullopt;
}

struct KernelEffects : PassInfoMixin<KernelEffects> {
    PreservedAnalyses run(Module &M, ModuleAnalysisManager &Manager) {
        auto &Functions = Manager.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
        Modes Known;
        json::Array Kernels;
        for (Function &F : M) {
            if (F.isDeclaration() || F.getCallingConv() != CallingConv::PTX_Kernel)
                continue;
            Footprints Ask(Functions.getResult<ScalarEvolutionAnalysis>(F),
                           Functions.getResult<DominatorTreeAnalysis>(F));
            json::Array Parameters;
            for (Argument &One : F.args()) {
                if (!One.getType()->isPointerTy())
                    continue;
                json::Object Said{{"index", int64_t(One.getArgNo())}};
                if (One.hasByValAttr()) {
                    Said["by_value"] = true;
                } else {
                    Effect Found = Known.of(One);
                    Said["mode"] = Found.Reads ? (Found.Writes ? "rw" : "r") : Found.Writes ? "w" : "-";
                    Said["escapes"] = Found.Escapes;
                    Said["deep"] = Found.Deep;
                    std::optional<json::Value> Bytes;
                    if (!Found.Escapes && (Found.Reads || Found.Writes))
                        Bytes = footprint(One, Ask, M.getDataLayout());
                    Said["footprint"] = Bytes ? std::move(*Bytes) : json::Value(nullptr);
                }
                Parameters.push_back(std::move(Said));
            }
            Kernels.push_back(json::Object{{"name", F.getName()}, {"parameters", std::move(Parameters)}});
        }
        print(json::Object{{"version", 1}, {"module", M.getSourceFileName()}, {"kernels", std::move(Kernels)}});
        return PreservedAnalyses::all();
    }

    static bool isRequired() { return true; }

    static void print(json::Object All) {
        const char *Path = std::getenv("KESCO_KERNEL_EFFECTS");
        if (!Path || !*Path) {
            outs() << formatv("{0:2}\n", json::Value(std::move(All)));
            return;
        }
        std::error_code Problem;
        raw_fd_ostream Out(Path, Problem, sys::fs::OF_Text);
        if (Problem)
            report_fatal_error(Twine("KESCO_KERNEL_EFFECTS: cannot write ") + Path + ": " + Problem.message());
        Out << formatv("{0:2}\n", json::Value(std::move(All)));
    }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "KernelEffects", "1", [](PassBuilder &Builder) {
                Builder.registerPipelineParsingCallback(
                    [](StringRef Name, ModulePassManager &Passes, ArrayRef<PassBuilder::PipelineElement>) {
                        if (Name != "kernel-effects")
                            return false;
                        Passes.addPass(KernelEffects());
                        return true;
                    });
                // With `clang -fpass-plugin` it runs last, and only where a file to write was named.
                Builder.registerOptimizerLastEPCallback([](ModulePassManager &Passes, OptimizationLevel, auto...) {
                    if (std::getenv("KESCO_KERNEL_EFFECTS"))
                        Passes.addPass(KernelEffects());
                });
            }};
}
