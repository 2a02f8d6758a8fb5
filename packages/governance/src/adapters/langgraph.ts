export { langChainModel } from './langgraph-model.ts'
export { governedNode } from './langgraph-node.ts'
export { langGraphTools } from './langgraph-tools.ts'
