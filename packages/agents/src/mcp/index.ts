export { connectMcp, type McpConnection } from './mcp-connect-node.ts'
export { mcpTools, type McpTool } from './mcp-tools.ts'
export { mcpHandlers, type McpHandlers } from './mcp-handlers.ts'
