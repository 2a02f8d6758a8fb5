// Tools that OpenAI defines and your program runs, through Responses. The names of options and arguments are those of
// `openai 7.55.0`. The results are written in the vendor's form (`wires/openai-responses/client-items.ts`).
import type { JsonObject, JsonValue } from '@skein/base'
import type { ImageBlock } from '../contract/content.ts'
import { clientTool, type ClientRun, type ClientTool } from './client-tool.ts'

const providers = ['openai', 'azure-openai']
const text = { type: 'string' } as const
const texts = { type: 'array', items: text } as const

type ShellArguments = {
  readonly commands: readonly string[]
  readonly timeout_ms?: number | null
  readonly max_output_length?: number | null
}

/** The output of one command; a text is the output of a command that ended well. */
type ShellOutput = {
  readonly stdout: string
  readonly stderr: string
  readonly outcome:
    { readonly type: 'exit'; readonly exit_code: number } | { readonly type: 'timeout' }
}

type LocalShellArguments = {
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly timeout_ms?: number | null
  readonly user?: string | null
  readonly working_directory?: string | null
}

/** One change of a file. `diff` is in the V4A format; a deleted file has none. */
type ApplyPatchArguments = {
  readonly type: 'create_file' | 'update_file' | 'delete_file'
  readonly path: string
  readonly diff?: string
}

type ApplyPatchResult =
  string | void | { readonly status: 'completed' | 'failed'; readonly output?: string }

type ComputerArguments = {
  /** What to do, in order; take a screenshot afterwards. */
  readonly actions: readonly (JsonObject & { readonly type: string })[]
  /** What OpenAI wants a person to look at before; acknowledge it in the result. */
  readonly pending_safety_checks?: readonly JsonObject[]
}

type ComputerResult =
  | ImageBlock
  | {
      readonly screenshot: ImageBlock
      readonly acknowledged_safety_checks?: readonly JsonObject[]
    }

type McpApprovalArguments = {
  readonly server_label: string
  /** The tool of the MCP server. */
  readonly name: string
  /** What the model wants to call it with. */
  readonly arguments: JsonValue
}

type McpApprovalResult = boolean | { readonly approve: boolean; readonly reason?: string }

/** Options of a remote MCP server, as `openaiTools.mcp` of `@skein/ai/server-tools` has them. */
type McpServer = {
  readonly server_label: string
  readonly server_url?: string
  readonly connector_id?: string
  readonly server_description?: string
  readonly authorization?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly allowed_tools?: readonly string[] | JsonObject
  readonly require_approval?: 'always' | 'never' | JsonObject
}

/**
 * Tools of OpenAI's Responses that your program runs:
 *
 *     llm({ model: openai('gpt-5.5'), tools: [openaiClientTools.applyPatch({ run: (change) => patch(change) })] })
 *
 * What the model asks for is untrusted: run it in a sandbox, or ask with `approval`.
 */
export const openaiClientTools = {
  shell: <Result extends string | readonly ShellOutput[]>(
    options: ClientRun<ShellArguments, Result>,
  ): ClientTool<ShellArguments, Result, 'shell'> =>
    clientTool(options, {
      name: 'shell',
      description: 'Runs commands in a shell.',
      parameters: { type: 'object', properties: { commands: texts }, required: ['commands'] },
      providers,
      definition: { type: 'shell', environment: { type: 'local' } },
    }),
  /** Of `codex-mini-latest`; later models have `shell`. */
  localShell: <Result extends string>(
    options: ClientRun<LocalShellArguments, Result>,
  ): ClientTool<LocalShellArguments, Result, 'local_shell'> =>
    clientTool(options, {
      name: 'local_shell',
      description: 'Runs one command on this machine.',
      parameters: { type: 'object', properties: { command: texts }, required: ['command'] },
      providers,
      definition: { type: 'local_shell' },
    }),
  applyPatch: <Result extends ApplyPatchResult>(
    options: ClientRun<ApplyPatchArguments, Result>,
  ): ClientTool<ApplyPatchArguments, Result, 'apply_patch'> =>
    clientTool(options, {
      name: 'apply_patch',
      description: 'Creates, changes or deletes one file.',
      parameters: {
        type: 'object',
        properties: { type: text, path: text, diff: text },
        required: ['type', 'path'],
      },
      providers,
      definition: { type: 'apply_patch' },
    }),
  /** `run` does the actions and returns a screenshot. */
  computer: <Result extends ComputerResult>(
    options: ClientRun<ComputerArguments, Result>,
  ): ClientTool<ComputerArguments, Result, 'computer'> =>
    clientTool(options, {
      name: 'computer',
      description: 'Uses the mouse and keyboard of a computer and takes screenshots.',
      parameters: {
        type: 'object',
        properties: { actions: { type: 'array', items: { type: 'object' } } },
        required: ['actions'],
      },
      providers,
      definition: { type: 'computer' },
    }),
  /**
   * A remote MCP server that OpenAI calls, and the answer to its requests for approval: `run` gets the call and says
   * whether it may be made. It replaces the entry of the server in `params.tools`.
   */
  mcp: <Result extends McpApprovalResult>(
    options: ClientRun<McpApprovalArguments, Result> & McpServer,
  ): ClientTool<McpApprovalArguments, Result, `mcp_approval_${string}`> => {
    const { run, approval, risk, timeoutMs, sequential, toModel, ...server } = options
    const ownFields = { run, approval, risk, timeoutMs, sequential, toModel }
    const own = Object.fromEntries(
      Object.entries(ownFields).filter(([, value]) => value !== undefined),
    )
    return clientTool(own as ClientRun<McpApprovalArguments, Result>, {
      name: `mcp_approval_${server.server_label}`,
      description: `Says whether a tool of ${server.server_label} may be called.`,
      parameters: {
        type: 'object',
        properties: { server_label: text, name: text, arguments: {} },
        required: ['name'],
      },
      providers,
      definition: { type: 'mcp', ...(server as JsonObject) }, // options are JSON
    })
  },
} as const
