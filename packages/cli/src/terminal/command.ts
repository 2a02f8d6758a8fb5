import { SkeinError } from '@skein/base'
import type { Output } from './output.ts'

/** A flag without a value: `--name`. */
export interface Switch {
  readonly type: 'boolean'
  readonly short?: string
  readonly description: string
}

/** A flag with a value: `--name <value>`. */
export interface TextOption {
  readonly type: 'string'
  readonly short?: string
  readonly description: string
  /** The placeholder for the value in help. */
  readonly value: string
}

/** A flag of a command. */
export type Option = Switch | TextOption

/** The flags of a command, by name. */
export type Options = Readonly<Record<string, Option>>

/** A word that follows the name of a command, such as the agent in `skein run support`. */
export interface Operand {
  readonly name: string
  readonly description: string
  readonly isOptional?: boolean
  /** Whether it may be several words. Only the last operand can be. */
  readonly isRest?: boolean
}

/** The values of the flags that the user gave. */
export type Values<Flags extends Options> = {
  readonly [Name in keyof Flags]?: Flags[Name]['type'] extends 'boolean' ? boolean : string
}

/** The input of a command. */
export interface Input<Flags extends Options = Options> {
  readonly values: Values<Flags>
  /** The operands that the user gave, in order. */
  readonly operands: readonly string[]
  readonly output: Output
}

/** One command: its operands, its flags, two examples for the help, and the function that runs it. */
export interface Command<Flags extends Options = Options> {
  readonly operands: readonly Operand[]
  readonly options: Flags
  readonly examples: readonly [string, string]
  readonly run: (input: Input<Flags>) => Promise<ExitCode>
}

/** Defines a command; the types of its flags are inferred from its options. */
export function defineCommand<const Flags extends Options>(command: Command<Flags>): Command {
  // The cast is safe: `main` parses the words with the same options, so `run` gets values of the right types.
  return command as unknown as Command
}

/** Flags that every command has. */
export const COMMON: { readonly 'no-color': Switch; readonly help: Switch } = {
  'no-color': { type: 'boolean', description: 'Turns colours off, as NO_COLOR does.' },
  help: { type: 'boolean', short: 'h', description: 'Shows this help.' },
}

/** The `--json` flag of commands that can print their result as JSON. */
export const JSON_OPTION: { readonly json: Switch } = {
  json: { type: 'boolean', description: 'Prints one JSON object, as the HTTP API would.' },
}

/** The flags that select the runtime that a command uses. */
export const SERVER_OPTIONS: { readonly [Name in 'url' | 'key' | 'folder']: TextOption } = {
  url: {
    type: 'string',
    value: 'address',
    description:
      'Server to use. Default: the one running in this folder; if none runs, the command opens the store itself.',
  },
  key: {
    type: 'string',
    value: 'key',
    description: 'API key for that server. Default: the variable SKEIN_KEY.',
  },
  folder: {
    type: 'string',
    value: 'folder',
    description: 'Definitions to use if no server runs. Default: as for `dev`.',
  },
}

/** Flags of commands that run a thread and show what it does. */
export const RUN_OPTIONS: typeof JSON_OPTION &
  typeof SERVER_OPTIONS & { readonly [Name in 'jsonl' | 'verbose']: Switch } & {
    readonly timeout: TextOption
  } = {
  ...JSON_OPTION,
  jsonl: {
    type: 'boolean',
    description: 'Prints events as they happen, one JSON object per line.',
  },
  timeout: {
    type: 'string',
    value: 'time',
    description: 'Stops the run after this time, e.g. 500ms, 30s, 5m; it can be resumed.',
  },
  verbose: { type: 'boolean', description: 'Also shows the arguments of tool calls.' },
  ...SERVER_OPTIONS,
}

/** The levels of `--log` and of the setting `logLevel`. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** The operand that names a thread. */
export const THREAD_OPERAND: Operand = {
  name: 'thread',
  description: 'Id of the thread, or enough of its beginning or end.',
}

/** The operand that names a folder of definitions. */
export const FOLDER_OPERAND: Operand = {
  name: 'folder',
  description:
    'Folder with agents/, prompts/, tools/ … Default: this folder, or the examples if it has no agents/.',
  isOptional: true,
}

/** The exit codes of the command, for scripts. */
export const ExitCode = {
  Done: 0,
  Failed: 1,
  Usage: 2,
  /** A call waits for a person's decision; the id of the thread is printed. */
  Waiting: 3,
  /** A check before delivery refused the result: nothing was delivered. */
  FailedSafe: 4,
  /** A limit of steps, turns, tokens, cost or time was reached. */
  Limit: 5,
  TimedOut: 124,
  Interrupted: 130,
} as const

/** One of the exit codes. */
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode]

/** An error with its own exit code. */
export class CommandError extends SkeinError {
  readonly exitCode: ExitCode

  constructor(
    message: string,
    options: {
      readonly code: string
      readonly hint?: string
      readonly exitCode?: ExitCode
      readonly cause?: unknown
    },
  ) {
    super(message, options)
    this.exitCode = options.exitCode ?? ExitCode.Failed
  }
}

/** Resolves at the first SIGINT or SIGTERM. A second signal calls `onSecond` and ends the process immediately. */
export function untilSignal(onSecond?: (signal: string) => void): Promise<string> {
  return new Promise((resolve) => {
    let isStopping = false
    const stop = (signal: string): void => {
      if (isStopping) {
        onSecond?.(signal)
        process.exit(ExitCode.Interrupted)
      }
      isStopping = true
      resolve(signal)
    }
    process.on('SIGINT', stop).on('SIGTERM', stop)
  })
}

/** Creates the error for a command that was called with wrong flags or operands. */
export function usageError(message: string, hint?: string): CommandError {
  return new CommandError(message, { code: 'USAGE', exitCode: ExitCode.Usage, hint })
}
