export { connectMcp, type McpConnection, type McpServerSource } from './mcp-connect-node.ts'
export {
  mcpTools,
  type McpRequestOptions,
  type McpTool,
  type McpToolsOptions,
} from './mcp-tools.ts'
export { mcpHandlers, type McpHandlers, type McpHandlersOptions } from './mcp-handlers.ts'
