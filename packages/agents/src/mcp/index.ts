export {
  mcpTools,
  type McpCallResult,
  type McpClient,
  type McpContent,
  type McpRequestOptions,
  type McpTool,
  type McpToolsOptions,
} from './mcp-tools.ts'
export {
  mcpHandlers,
  type McpCallRequest,
  type McpExtra,
  type McpHandlers,
  type McpHandlersOptions,
  type ServedAgent,
  type ServedTool,
} from './mcp-handlers.ts'
