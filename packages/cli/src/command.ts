import type { ExitCode } from './exit-code.ts'
import type { Output } from './output.ts'

/** `--name` */
export interface Switch {
  readonly type: 'boolean'
  readonly short?: string
  readonly description: string
}

/** `--name <value>` */
export interface TextOption {
  readonly type: 'string'
  readonly short?: string
  readonly description: string
  /** What stands for the value in help. */
  readonly value: string
}

export type Option = Switch | TextOption

export type Options = Readonly<Record<string, Option>>

/** What follows the name of a command. */
export interface Operand {
  readonly name: string
  readonly description: string
  readonly isOptional?: boolean
}

/** Flags as they were given. */
export type Values<Flags extends Options> = {
  readonly [Name in keyof Flags]?: Flags[Name]['type'] extends 'boolean' ? boolean : string
}

export interface Input<Flags extends Options = Options> {
  readonly values: Values<Flags>
  /** One for each operand that was given. */
  readonly operands: readonly string[]
  readonly output: Output
}

/** One thing that the command can do. */
export interface Command<Flags extends Options = Options> {
  readonly operands: readonly Operand[]
  readonly options: Flags
  readonly examples: readonly [string, string]
  readonly run: (input: Input<Flags>) => Promise<ExitCode>
}

/** Defines a command; the types of its flags follow from the table. */
export function defineCommand<const Flags extends Options>(command: Command<Flags>): Command {
  // Whoever runs it parses by its own table, so the values are those it asked for.
  return command as unknown as Command
}

/** Flags that every command knows. */
export const COMMON: { readonly 'no-color': Switch; readonly help: Switch } = {
  'no-color': { type: 'boolean', description: 'No colours; NO_COLOR does the same.' },
  help: { type: 'boolean', short: 'h', description: 'Shows this.' },
}

export const JSON_OPTION: { readonly json: Switch } = {
  json: { type: 'boolean', description: 'One JSON object, as the HTTP API has it.' },
}

/** Where the runtime is. */
export const SERVER_OPTIONS: { readonly [Name in 'url' | 'key' | 'folder']: TextOption } = {
  url: {
    type: 'string',
    value: 'address',
    description: 'Of a server; default: the one that runs in this folder, else none is needed.',
  },
  key: {
    type: 'string',
    value: 'key',
    description: 'API key of that server; SKEIN_KEY does the same.',
  },
  folder: {
    type: 'string',
    value: 'folder',
    description: 'Definitions to use when no server runs; default as for `dev`.',
  },
}

/** How a run is shown. */
export const RUN_OPTIONS: typeof JSON_OPTION &
  typeof SERVER_OPTIONS & { readonly [Name in 'jsonl' | 'verbose']: Switch } & {
    readonly timeout: TextOption
  } = {
  ...JSON_OPTION,
  jsonl: { type: 'boolean', description: 'Events as they happen, one JSON object a line.' },
  timeout: {
    type: 'string',
    value: 'time',
    description: 'Parks the run after this long: 500ms, 30s, 5m.',
  },
  verbose: { type: 'boolean', short: 'v', description: 'Arguments of tool calls too.' },
  ...SERVER_OPTIONS,
}
