import { SkeinError } from '@skein/base'

/** What happened to the connection of an MCP server. */
export type McpConnectionErrorCode =
  /** The server cannot be reached now. The call was not sent. */
  | 'MCP_UNAVAILABLE'
  /** The connection was lost while a call ran. Whether the call had an effect is unknown. */
  | 'MCP_OUTCOME_UNKNOWN'

/** Thrown by tools of `connectMcp` while the connection to their server is lost. */
export class McpConnectionError extends SkeinError {
  declare readonly code: McpConnectionErrorCode

  constructor(
    message: string,
    { code, hint, cause }: { code: McpConnectionErrorCode; hint: string; cause?: unknown },
  ) {
    super(message, { code, hint, cause })
  }
}

/** Creates the error for a call that was not sent. */
export function serverUnavailable(
  server: string,
  { reason, waitMs, cause }: { reason: string; waitMs: number; cause?: unknown },
): McpConnectionError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000))
  return new McpConnectionError(
    `The MCP server ${server} cannot be reached: ${reason} The call was not sent.`,
    {
      code: 'MCP_UNAVAILABLE',
      hint: `The next attempt to connect is possible in ${seconds} s.`,
      cause,
    },
  )
}

/** Creates the error for a call whose connection was lost before its answer came. */
export function outcomeUnknown(
  server: string,
  { tool, reason, cause }: { tool: string; reason: string; cause?: unknown },
): McpConnectionError {
  return new McpConnectionError(
    `The connection to the MCP server ${server} was lost while its tool "${tool}" ran: ${reason} The outcome is unknown: the tool may have done its work, all of it or a part.`,
    {
      code: 'MCP_OUTCOME_UNKNOWN',
      hint: 'Find out what was done before you call the tool again. Calls of tools that the server declares read-only or idempotent are repeated.',
      cause,
    },
  )
}
