export { connectMcp, type McpConnection } from './mcp-connect-node.ts'
export { McpConnectionError, type McpConnectionErrorCode } from './mcp-connection-error.ts'
export { mcpTools } from './mcp-tools.ts'
export { mcpHandlers, type McpHandlers } from './mcp-handlers.ts'
