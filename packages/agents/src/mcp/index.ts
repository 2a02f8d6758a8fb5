export { mcpTools, type McpToolsOptions } from './mcp-tools.ts'
export {
  mcpHandlers,
  type McpCallRequest,
  type McpExtra,
  type McpHandlers,
  type McpHandlersOptions,
  type ServedAgent,
  type ServedTool,
} from './mcp-handlers.ts'
export type {
  McpCallResult,
  McpClient,
  McpContent,
  McpRequestOptions,
  McpTool,
} from './mcp-types.ts'
