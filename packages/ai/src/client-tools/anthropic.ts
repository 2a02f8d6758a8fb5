// Tools that Anthropic defines and your program runs. The calls are ordinary ones, so results are what `run` returns:
// text, data, or blocks such as a screenshot. The names of options and arguments are those of `@anthropic-ai/sdk 1.10.0`.
import type { JsonObject } from '@skein/base'
import { clientTool, type ClientRun, type ClientTool } from './client-tool.ts'

const providers = ['anthropic']
const text = { type: 'string' } as const
const lines = { type: 'array', items: { type: 'integer' } } as const

/** Fields that every tool of the API may have. */
type Common = {
  readonly cache_control?: { readonly type: 'ephemeral'; readonly ttl?: '5m' | '1h' }
}

/** What the model asks a shell for. With `restart` there is no command. */
type BashArguments = { readonly command?: string; readonly restart?: boolean }

/** What the model asks a text editor for. */
type TextEditorArguments =
  | { readonly command: 'view'; readonly path: string; readonly view_range?: readonly number[] }
  | { readonly command: 'create'; readonly path: string; readonly file_text: string }
  | {
      readonly command: 'str_replace'
      readonly path: string
      readonly old_str: string
      readonly new_str?: string
    }
  | {
      readonly command: 'insert'
      readonly path: string
      readonly insert_line: number
      readonly insert_text: string
    }

/** What the model asks its memory for: the commands of the editor, and two more. Paths begin with `/memories`. */
type MemoryArguments =
  | TextEditorArguments
  | { readonly command: 'delete'; readonly path: string }
  | { readonly command: 'rename'; readonly old_path: string; readonly new_path: string }

/** What the model asks a computer for. `action` says which of the other fields are there. */
type ComputerArguments = {
  readonly action: string
  readonly coordinate?: readonly number[]
  readonly start_coordinate?: readonly number[]
  readonly text?: string
  readonly scroll_direction?: 'up' | 'down' | 'left' | 'right'
  readonly scroll_amount?: number
  readonly duration?: number
  readonly region?: readonly number[]
  readonly [field: string]: unknown
}

type Options<Args, Result, More = object> = ClientRun<Args, Result> & Common & More

/** Divides the options of a tool: what the vendor gets, and what stays here. */
function divide<Args, Result>(
  options: Options<Args, Result>,
  names: readonly string[],
): { readonly own: ClientRun<Args, Result>; readonly sent: JsonObject } {
  const entries = Object.entries(options)
  const isSent = ([key]: readonly [string, unknown]): boolean =>
    key === 'cache_control' || names.includes(key)
  return {
    own: Object.fromEntries(entries.filter((entry) => !isSent(entry))) as ClientRun<Args, Result>,
    sent: Object.fromEntries(entries.filter(isSent)) as JsonObject, // options are JSON
  }
}

const editorFields = {
  path: text,
  file_text: text,
  old_str: text,
  new_str: text,
  insert_line: { type: 'integer' },
  insert_text: text,
  view_range: lines,
} as const

/**
 * Tools of Anthropic's Messages API that your program runs:
 *
 *     llm({ model: anthropic('claude-sonnet-5'), tools: [anthropicClientTools.bash({ run: ({ command }) => shell(command) })] })
 *
 * What the model asks for is untrusted: run it in a sandbox, or ask with `approval`.
 */
export const anthropicClientTools = {
  bash: <Result>(
    options: Options<BashArguments, Result>,
  ): ClientTool<BashArguments, Result, 'bash'> => {
    const { own, sent } = divide(options, [])
    return clientTool(own, {
      name: 'bash',
      description: 'Runs a command in a shell that keeps its state between calls.',
      parameters: { type: 'object', properties: { command: text, restart: { type: 'boolean' } } },
      providers,
      definition: { type: 'bash_20250124', ...sent },
    })
  },
  /** For Claude 4 and later. */
  textEditor: <Result>(
    options: Options<TextEditorArguments, Result, { readonly max_characters?: number }>,
  ): ClientTool<TextEditorArguments, Result, 'str_replace_based_edit_tool'> => {
    const { own, sent } = divide(options, ['max_characters'])
    return clientTool(own, {
      name: 'str_replace_based_edit_tool',
      description: 'Views, creates and edits text files.',
      parameters: {
        type: 'object',
        properties: { command: text, ...editorFields },
        required: ['command', 'path'],
      },
      providers,
      definition: { type: 'text_editor_20250728', ...sent },
    })
  },
  memory: <Result>(
    options: Options<MemoryArguments, Result>,
  ): ClientTool<MemoryArguments, Result, 'memory'> => {
    const { own, sent } = divide(options, [])
    return clientTool(own, {
      name: 'memory',
      description: 'Reads and writes files below /memories, which outlive the conversation.',
      parameters: {
        type: 'object',
        properties: { command: text, ...editorFields, old_path: text, new_path: text },
        required: ['command'],
      },
      providers,
      definition: { type: 'memory_20250818', ...sent },
    })
  },
  /**
   * `run` returns a screenshot as an image block. With the size of a display this is the tool of models before Opus
   * 5.5 and Sonnet 5.5 (`anthropic-beta: computer-use-2025-11-24`), without it the toolset of those and later models.
   * The arguments have the same form with both.
   */
  computer: <Result>(
    options: Options<
      ComputerArguments,
      Result,
      {
        readonly display_width_px?: number
        readonly display_height_px?: number
        readonly display_number?: number
        readonly enable_zoom?: boolean
        /** Settings of single actions, for the toolset. */
        readonly configs?: Readonly<Record<string, object>>
      }
    >,
  ): ClientTool<ComputerArguments, Result, 'computer'> => {
    const { own, sent } = divide(options, [
      'display_width_px',
      'display_height_px',
      'display_number',
      'enable_zoom',
      'configs',
    ])
    const isSingle = sent['display_width_px'] !== undefined
    return clientTool(own, {
      name: 'computer',
      description: 'Uses the mouse and keyboard of a computer and takes screenshots.',
      parameters: {
        type: 'object',
        properties: { action: text },
        required: ['action'],
      },
      providers,
      definition: { type: isSingle ? 'computer_20251124' : 'computer_toolset_20260801', ...sent },
    })
  },
} as const
