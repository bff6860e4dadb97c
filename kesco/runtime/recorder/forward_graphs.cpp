// Graphs, in front of the real functions. Nodes that the books do not know, because they were captured or cloned,
// cannot be changed there: from then on a launch of any graph may touch everything.
#include "forward.h"

using namespace forward;

namespace {

cudaGraph_t in(cudaGraph_t graph) {
    return known(graph);
}
cudaGraphExec_t in(cudaGraphExec_t graph) {
    return known(graph);
}
cudaGraphNode_t in(cudaGraphNode_t node) {
    return known(node);
}
std::vector<cudaGraphNode_t> all(const cudaGraphNode_t *nodes, std::size_t count) {
    std::vector<cudaGraphNode_t> result;
    for (std::size_t i = 0; i < count; ++i)
        result.push_back(in(nodes[i]));
    return result;
}

// What changes a graph; if the books cannot follow, no graph is certain any more.
template <typename Real, typename Model> cudaError_t changes(const char *name, Real real, Model model) {
    const cudaError_t result = real();
    observe(name, [&](const Call &call) {
        if (result != cudaSuccess)
            return failed(name, result, call);
        try {
            expect(model());
        } catch (...) {
            graphs_are_unclear();
            throw;
        }
    });
    return result;
}

template <typename Handle, typename Real, typename Model>
cudaError_t adds(const char *name, Handle *made, Real real, Model model) {
    return changes(name, real, [&] {
        Handle ours = nullptr;
        const cudaError_t result = model(&ours);
        if (result == cudaSuccess)
            bind(*made, ours);
        return result;
    });
}

cudaKernelNodeParams in(const cudaKernelNodeParams &parameters) {
    if (parameters.extra != nullptr)
        throw Lost{};
    cudaKernelNodeParams result = parameters;
    result.func = const_cast<void *>(stub_of(parameters.func));
    return result;
}
cudaMemsetParams in(const cudaMemsetParams &parameters) {
    cudaMemsetParams result = parameters;
    result.dst = forward::in(parameters.dst);
    return result;
}

} // namespace

MODELED(cudaGraphCreate);
MODELED(cudaGraphDestroy);
MODELED(cudaGraphAddKernelNode);
MODELED(cudaGraphAddMemcpyNode);
MODELED(cudaGraphAddMemcpyNode1D);
MODELED(cudaGraphAddMemsetNode);
MODELED(cudaGraphAddHostNode);
MODELED(cudaGraphAddEmptyNode);
MODELED(cudaGraphAddChildGraphNode);
MODELED(cudaGraphAddDependencies);
MODELED(cudaGraphClone);
MODELED(cudaGraphInstantiateWithFlags);
MODELED(cudaGraphExecDestroy);
MODELED(cudaGraphKernelNodeSetParams);
MODELED(cudaGraphExecKernelNodeSetParams);
MODELED(cudaGraphExecMemcpyNodeSetParams);
MODELED(cudaGraphExecMemcpyNodeSetParams1D);
MODELED(cudaGraphExecMemsetNodeSetParams);
MODELED(cudaGraphExecHostNodeSetParams);

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
    REAL(cudaGraphCreate);
    return adds(
        "cudaGraphCreate", graph, [&] { return real(graph, flags); },
        [&](cudaGraph_t *ours) { return MODEL(cudaGraphCreate)(ours, flags); });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    REAL(cudaGraphDestroy);
    return destroys("cudaGraphDestroy", graph, real, MODEL(cudaGraphDestroy));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    REAL(cudaGraphExecDestroy);
    return destroys("cudaGraphExecDestroy", graph, real, MODEL(cudaGraphExecDestroy));
}
cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
    REAL(cudaGraphClone);
    return adds(
        "cudaGraphClone", clone, [&] { return real(clone, graph); },
        [&](cudaGraph_t *ours) { return MODEL(cudaGraphClone)(ours, in(graph)); });
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
    REAL(cudaGraphInstantiateWithFlags);
    return adds(
        "cudaGraphInstantiateWithFlags", made, [&] { return real(made, graph, flags); },
        [&](cudaGraphExec_t *ours) { return MODEL(cudaGraphInstantiateWithFlags)(ours, in(graph), flags); });
}
#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
    REAL(cudaGraphInstantiate);
    return adds(
        "cudaGraphInstantiate", made, [&] { return real(made, graph, flags); },
        [&](cudaGraphExec_t *ours) { return MODEL(cudaGraphInstantiateWithFlags)(ours, in(graph), flags); });
}
MODELED(cudaGraphExecUpdate);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info) {
    REAL(cudaGraphExecUpdate);
    return changes(
        "cudaGraphExecUpdate", [&] { return real(exec, graph, info); },
        [&] { return MODEL(cudaGraphExecUpdate)(in(exec), in(graph), nullptr); });
}
#endif

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const cudaKernelNodeParams *p) {
    REAL(cudaGraphAddKernelNode);
    return adds(
        "cudaGraphAddKernelNode", node, [&] { return real(node, graph, after, count, p); },
        [&](cudaGraphNode_t *ours) {
            const cudaKernelNodeParams same = in(*p);
            return MODEL(cudaGraphAddKernelNode)(ours, in(graph), all(after, count).data(), count, &same);
        });
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const cudaMemcpy3DParms *p) {
    REAL(cudaGraphAddMemcpyNode);
    return adds(
        "cudaGraphAddMemcpyNode", node, [&] { return real(node, graph, after, count, p); },
        [&](cudaGraphNode_t *ours) {
            const cudaMemcpy3DParms same = forward::in(*p);
            return MODEL(cudaGraphAddMemcpyNode)(ours, in(graph), all(after, count).data(), count, &same);
        });
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, void *to, const void *from, size_t size, cudaMemcpyKind kind) {
    REAL(cudaGraphAddMemcpyNode1D);
    return adds(
        "cudaGraphAddMemcpyNode1D", node, [&] { return real(node, graph, after, count, to, from, size, kind); },
        [&](cudaGraphNode_t *ours) {
            return MODEL(cudaGraphAddMemcpyNode1D)(ours, in(graph), all(after, count).data(), count, forward::in(to),
                                                   forward::in(from), size, kind);
        });
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const cudaMemsetParams *p) {
    REAL(cudaGraphAddMemsetNode);
    return adds(
        "cudaGraphAddMemsetNode", node, [&] { return real(node, graph, after, count, p); },
        [&](cudaGraphNode_t *ours) {
            const cudaMemsetParams same = in(*p);
            return MODEL(cudaGraphAddMemsetNode)(ours, in(graph), all(after, count).data(), count, &same);
        });
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                 const cudaHostNodeParams *p) {
    REAL(cudaGraphAddHostNode);
    return adds(
        "cudaGraphAddHostNode", node, [&] { return real(node, graph, after, count, p); },
        [&](cudaGraphNode_t *ours) {
            return MODEL(cudaGraphAddHostNode)(ours, in(graph), all(after, count).data(), count, p);
        });
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                  size_t count) {
    REAL(cudaGraphAddEmptyNode);
    return adds(
        "cudaGraphAddEmptyNode", node, [&] { return real(node, graph, after, count); },
        [&](cudaGraphNode_t *ours) {
            return MODEL(cudaGraphAddEmptyNode)(ours, in(graph), all(after, count).data(), count);
        });
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                       size_t count, cudaGraph_t child) {
    REAL(cudaGraphAddChildGraphNode);
    return adds(
        "cudaGraphAddChildGraphNode", node, [&] { return real(node, graph, after, count, child); },
        [&](cudaGraphNode_t *ours) {
            return MODEL(cudaGraphAddChildGraphNode)(ours, in(graph), all(after, count).data(), count, in(child));
        });
}
#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t count) {
    REAL(cudaGraphAddDependencies);
    return changes(
        "cudaGraphAddDependencies", [&] { return real(graph, from, to, edges, count); },
        [&] {
            return MODEL(cudaGraphAddDependencies)(in(graph), all(from, count).data(), all(to, count).data(), nullptr,
                                                   count);
        });
}
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     size_t count) {
    REAL(cudaGraphAddDependencies);
    return changes(
        "cudaGraphAddDependencies", [&] { return real(graph, from, to, count); },
        [&] {
            return MODEL(cudaGraphAddDependencies)(in(graph), all(from, count).data(), all(to, count).data(), count);
        });
}
#endif

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *p) {
    REAL(cudaGraphKernelNodeSetParams);
    return changes(
        "cudaGraphKernelNodeSetParams", [&] { return real(node, p); },
        [&] {
            const cudaKernelNodeParams same = in(*p);
            return MODEL(cudaGraphKernelNodeSetParams)(in(node), &same);
        });
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *p) {
    REAL(cudaGraphExecKernelNodeSetParams);
    return changes(
        "cudaGraphExecKernelNodeSetParams", [&] { return real(exec, node, p); },
        [&] {
            const cudaKernelNodeParams same = in(*p);
            return MODEL(cudaGraphExecKernelNodeSetParams)(in(exec), in(node), &same);
        });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms *p) {
    REAL(cudaGraphExecMemcpyNodeSetParams);
    return changes(
        "cudaGraphExecMemcpyNodeSetParams", [&] { return real(exec, node, p); },
        [&] {
            const cudaMemcpy3DParms same = forward::in(*p);
            return MODEL(cudaGraphExecMemcpyNodeSetParams)(in(exec), in(node), &same);
        });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
                                               size_t size, cudaMemcpyKind kind) {
    REAL(cudaGraphExecMemcpyNodeSetParams1D);
    return changes(
        "cudaGraphExecMemcpyNodeSetParams1D", [&] { return real(exec, node, to, from, size, kind); },
        [&] {
            return MODEL(cudaGraphExecMemcpyNodeSetParams1D)(in(exec), in(node), forward::in(to), forward::in(from),
                                                             size, kind);
        });
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams *p) {
    REAL(cudaGraphExecMemsetNodeSetParams);
    return changes(
        "cudaGraphExecMemsetNodeSetParams", [&] { return real(exec, node, p); },
        [&] {
            const cudaMemsetParams same = in(*p);
            return MODEL(cudaGraphExecMemsetNodeSetParams)(in(exec), in(node), &same);
        });
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams *p) {
    REAL(cudaGraphExecHostNodeSetParams);
    return changes(
        "cudaGraphExecHostNodeSetParams", [&] { return real(exec, node, p); },
        [&] { return MODEL(cudaGraphExecHostNodeSetParams)(in(exec), in(node), p); });
}

} // extern "C"
