// Graphs made node by node. A graph's execution is a copy of its nodes; launching it puts them on streams of its own.
#include "streams.h"

#include <algorithm>
#include <map>

using namespace dryrun;

namespace {

Graph *graph_of(cudaGraph_t handle) {
    return reinterpret_cast<Graph *>(handle);
}
Node *node_of(cudaGraphNode_t handle) {
    return reinterpret_cast<Node *>(handle);
}

cudaError_t add(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after, std::size_t count,
                Operation operation, cudaGraphNodeType type) {
    std::vector<Node *> before;
    for (std::size_t i = 0; i < count; ++i)
        before.push_back(node_of(after[i]));
    *made = reinterpret_cast<cudaGraphNode_t>(graph_of(graph)->add(std::move(operation), std::move(before), type));
    return cudaSuccess;
}

// Nodes in an order in which each comes behind those it waits for; false if there is a circle.
bool sorted(const Graph &graph, std::vector<const Node *> &order) {
    std::map<const Node *, int> state; // 1 being visited, 2 done
    std::function<bool(const Node *)> visit = [&](const Node *node) {
        if (state[node] != 0)
            return state[node] == 2;
        state[node] = 1;
        for (const Node *before : node->after)
            if (!visit(before))
                return false;
        state[node] = 2;
        order.push_back(node);
        return true;
    };
    return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto &node) { return visit(node.get()); });
}

// Puts copies of all nodes of one graph into another, behind given nodes; returns those that nothing follows.
bool copy_into(const Graph &from, Graph &to, const std::vector<Node *> &after, std::vector<Node *> &last) {
    std::vector<const Node *> order;
    if (!sorted(from, order))
        return false;
    std::map<const Node *, Node *> copies;
    std::map<const Node *, bool> followed;
    for (const Node *node : order) {
        std::vector<Node *> before = node->after.empty() ? after : std::vector<Node *>{};
        for (const Node *one : node->after) {
            before.push_back(copies[one]);
            followed[one] = true;
        }
        copies[node] = to.add(node->operation, std::move(before), node->type);
    }
    to.copies.insert(copies.begin(), copies.end());
    for (const Node *node : order)
        if (!followed[node])
            last.push_back(copies[node]);
    return true;
}

// An operation that a node of a graph, or of its execution, is given instead of its own.
cudaError_t replace(const Call &call, Node *node, Operation made, bool fits) {
    if (!fits || node == nullptr)
        return call(cudaErrorInvalidValue);
    node->operation = std::move(made);
    return cudaSuccess;
}
Node *copy_of(cudaGraphExec_t exec, cudaGraphNode_t node) {
    const auto &copies = reinterpret_cast<Graph *>(exec)->copies;
    const auto found = copies.find(node_of(node));
    return found == copies.end() ? nullptr : found->second;
}
cudaError_t kernel(const Call &call, Node *node, const cudaKernelNodeParams &p) {
    cudaError_t refused = cudaSuccess;
    Operation made =
        kernel_launch(p.func, p.gridDim, p.blockDim, p.kernelParams, p.sharedMemBytes, call.stack(), refused);
    return replace(call, node, std::move(made), refused == cudaSuccess);
}

} // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned) {
    const Call call;
    *graph = reinterpret_cast<cudaGraph_t>(new Graph);
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    const Call call;
    delete graph_of(graph);
    return cudaSuccess;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const cudaKernelNodeParams *p) {
    const Call call;
    if (p->extra != nullptr)
        refuse("cudaGraphAddKernelNode with 'extra'");
    cudaError_t refused = cudaSuccess;
    Operation made =
        kernel_launch(p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes, call.stack(), refused);
    if (refused != cudaSuccess)
        return call(refused);
    return add(node, graph, after, count, std::move(made), cudaGraphNodeTypeKernel);
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const cudaMemcpy3DParms *p) {
    const Call call;
    Operation made;
    if (!copy("cudaGraphAddMemcpyNode", rows_of(*p), p->kind, true, call, made))
        return call(cudaErrorInvalidValue);
    return add(node, graph, after, count, std::move(made), cudaGraphNodeTypeMemcpy);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, void *to, const void *from, size_t size, cudaMemcpyKind kind) {
    const Call call;
    Operation made;
    const Copy what{{reinterpret_cast<std::uintptr_t>(to), size}, {reinterpret_cast<std::uintptr_t>(from), size}};
    if (!copy("cudaGraphAddMemcpyNode1D", what, kind, true, call, made))
        return call(cudaErrorInvalidValue);
    return add(node, graph, after, count, std::move(made), cudaGraphNodeTypeMemcpy);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                   const cudaMemsetParams *p) {
    const Call call;
    Operation made;
    const Range what{reinterpret_cast<std::uintptr_t>(p->dst), p->width * p->elementSize, p->pitch, p->height};
    if (!fill("cudaGraphAddMemsetNode", what, 1, 0, p->value, p->elementSize, true, call, made))
        return call(cudaErrorInvalidValue);
    return add(node, graph, after, count, std::move(made), cudaGraphNodeTypeMemset);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                 const cudaHostNodeParams *p) {
    const Call call;
    return add(node, graph, after, count, host_function(p->fn, p->userData, call.stack()), cudaGraphNodeTypeHost);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                  size_t count) {
    const Call call;
    return add(node, graph, after, count, {}, cudaGraphNodeTypeEmpty);
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                       size_t count, cudaGraph_t child) {
    const Call call;
    std::vector<Node *> before, last;
    for (std::size_t i = 0; i < count; ++i)
        before.push_back(node_of(after[i]));
    if (!copy_into(*graph_of(child), *graph_of(graph), before, last))
        return call(cudaErrorInvalidValue);
    last.insert(last.end(), before.begin(), before.end());
    *node = reinterpret_cast<cudaGraphNode_t>(graph_of(graph)->add({}, std::move(last), cudaGraphNodeTypeGraph));
    return cudaSuccess;
}
#if CUDART_VERSION >= 13000
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *, size_t count) {
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     size_t count) {
#endif
    const Call call;
    for (std::size_t i = 0; i < count; ++i)
        node_of(to[i])->after.push_back(node_of(from[i]));
    return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type) {
    *type = node_of(node)->type;
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    const Call call;
    const auto &all = graph_of(graph)->nodes;
    for (std::size_t i = 0; nodes != nullptr && i < all.size() && i < *count; ++i)
        nodes[i] = reinterpret_cast<cudaGraphNode_t>(all[i].get());
    *count = all.size();
    return cudaSuccess;
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    const Call call;
    std::size_t found = 0;
    for (const auto &node : graph_of(graph)->nodes)
        if (node->after.empty()) {
            if (nodes != nullptr && found < *count)
                nodes[found] = reinterpret_cast<cudaGraphNode_t>(node.get());
            ++found;
        }
    *count = found;
    return cudaSuccess;
}
cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
    const Call call;
    auto copy = std::make_unique<Graph>();
    std::vector<Node *> last;
    if (!copy_into(*graph_of(graph), *copy, {}, last))
        return call(cudaErrorInvalidValue);
    *clone = reinterpret_cast<cudaGraph_t>(copy.release());
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long) {
    const Call call;
    return call(cudaGraphClone(reinterpret_cast<cudaGraph_t *>(made), graph));
}
#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
#else
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, cudaGraphNode_t *, char *, size_t flags) {
#endif
    const Call call;
    return cudaGraphInstantiateWithFlags(made, graph, flags);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    const Call call;
    delete reinterpret_cast<Graph *>(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *p) {
    const Call call;
    return kernel(call, node_of(node), *p);
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *p) {
    const Call call;
    return kernel(call, copy_of(exec, node), *p);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms *p) {
    const Call call;
    Operation made;
    const bool fits = copy("cudaGraphExecMemcpyNodeSetParams", rows_of(*p), p->kind, true, call, made);
    return replace(call, copy_of(exec, node), std::move(made), fits);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
                                               size_t size, cudaMemcpyKind kind) {
    const Call call;
    Operation made;
    const Copy what{{reinterpret_cast<std::uintptr_t>(to), size}, {reinterpret_cast<std::uintptr_t>(from), size}};
    const bool fits = copy("cudaGraphExecMemcpyNodeSetParams1D", what, kind, true, call, made);
    return replace(call, copy_of(exec, node), std::move(made), fits);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams *p) {
    const Call call;
    Operation made;
    const Range what{reinterpret_cast<std::uintptr_t>(p->dst), p->width * p->elementSize, p->pitch, p->height};
    const bool fits = fill("cudaGraphExecMemsetNodeSetParams", what, 1, 0, p->value, p->elementSize, true, call, made);
    return replace(call, copy_of(exec, node), std::move(made), fits);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams *p) {
    const Call call;
    return replace(call, copy_of(exec, node), host_function(p->fn, p->userData, call.stack()), true);
}
#if CUDART_VERSION >= 12000
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *result) {
    const Call call;
    auto *own = reinterpret_cast<Graph *>(exec);
    Graph fresh;
    std::vector<Node *> last;
    const bool same = own->nodes.size() == graph_of(graph)->nodes.size();
    if (!same || !copy_into(*graph_of(graph), fresh, {}, last)) {
        if (result != nullptr)
            result->result = cudaGraphExecUpdateErrorTopologyChanged;
        return call(cudaErrorGraphExecUpdateFailure);
    }
    *own = std::move(fresh);
    if (result != nullptr)
        result->result = cudaGraphExecUpdateSuccess;
    return cudaSuccess;
}
#endif

} // extern "C"
