export { connectMcp, type McpConnection } from './mcp-connect-node.ts'
export { mcpTools } from './mcp-tools.ts'
export { mcpHandlers, type McpHandlers } from './mcp-handlers.ts'
