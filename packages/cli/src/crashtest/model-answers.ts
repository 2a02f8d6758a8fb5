import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { readFileSync } from 'node:fs'
import { isPlainObject, type JsonObject, tryParseJson } from '@skein/base'
import type { ScriptFunction, ScriptPart, ScriptStep } from '@skein/ai/testing'
import { usageError } from '../terminal/command.ts'

/** Answers requests to models. One for each crash point: the ids of its answers continue after the restart. */
export type ModelAnswers = (url: string, init: RequestInit) => Promise<Response>

/** The sources of answers, of which one is used. */
export interface ModelOptions {
  readonly script?: string
  /** Asks the real vendors in the first run, and answers from this file in the others. */
  readonly record?: string
  readonly replay?: string
}

/** How a program's models are answered. */
export interface Models {
  /** Makes the answers of a crash point; of the first run if `isFirst`. Undefined if nothing answers models. */
  readonly open: (isFirst: boolean) => Promise<OpenModels | undefined>
}

/** The answers of one crash point. */
export interface OpenModels {
  /** Called at each start of the program. */
  readonly start: () => Promise<ModelAnswers>
  /** Resolves when what was recorded is in its file. */
  readonly saved: () => Promise<void>
}

/** Reads a script or opens a recording. */
export async function openModels({ script, record, replay }: ModelOptions): Promise<Models> {
  if ([script, record, replay].filter((one) => one !== undefined).length > 1)
    throw usageError('Use one of --model-script, --record and --replay.')
  const testing = await import('@skein/ai/testing')
  if (script !== undefined) {
    const steps = await readScript(resolve(script))
    return {
      open: async () => {
        const vendor = testing.vendorServer(steps)
        return { start: async () => vendor.fetch, saved: async () => undefined }
      },
    }
  }
  const file = record ?? replay
  if (file === undefined) return { open: async () => undefined }
  const store = testing.fileStore(resolve(file))
  return {
    open: async (isFirst) => {
      if (isFirst && record !== undefined) {
        const recording = testing.recordFetch(store)
        return {
          start: async () => recording,
          saved: () => recording.saved(),
        }
      }
      // Each start replays from the beginning: after a crash a program may ask the same again.
      return {
        start: async () => testing.replayFetch(store),
        saved: async () => undefined,
      }
    },
  }
}

/**
 * Reads a script: a module whose default export is a list of steps or a function, as for `scripted`, or JSON. A list is
 * used by position in the conversation, not by time: the answer after two answers is the third, also after a restart.
 */
async function readScript(file: string): Promise<ScriptFunction> {
  const [{ fails }, { ErrorCode }] = await Promise.all([
    import('@skein/ai/testing'),
    import('@skein/ai'),
  ])
  const script = file.endsWith('.json') ? readJsonScript(file) : await importScript(file)
  if (typeof script === 'function') return script
  return (request, index) => {
    const position = request.messages.filter(({ type }) => type === 'assistant').length
    const step = script[position]
    if (step === undefined)
      return fails({
        code: ErrorCode.InvalidRequest,
        message: `The script has no step ${position + 1}.`,
      })
    return typeof step === 'function' ? step(request, index) : step
  }
}

async function importScript(file: string): Promise<readonly ScriptStep[] | ScriptFunction> {
  const module = (await import(pathToFileURL(file).href).catch((error: unknown) => {
    throw usageError(`${file} cannot be loaded.`, String(error))
  })) as { readonly default?: unknown }
  const script = module.default
  if (typeof script === 'function') return script as ScriptFunction
  if (Array.isArray(script)) return script as ScriptStep[]
  throw usageError(`${file} has no script.`, 'Its default export is a list of steps or a function.')
}

const FORM = 'Write a list: ["a text", { "call": "refund", "arguments": { "order": "O-7" } }].'

function readJsonScript(file: string): readonly ScriptStep[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    throw usageError(`${file} cannot be read.`, FORM)
  }
  const steps = tryParseJson(text)
  if (!Array.isArray(steps)) throw usageError(`${file} is not a list of steps.`, FORM)
  return steps.map((step: unknown, index) => {
    const parts = (Array.isArray(step) ? step : [step]).map(toPart)
    if (parts.includes(undefined))
      throw usageError(`Step ${index + 1} of ${file} is unknown.`, FORM)
    return parts as ScriptPart[]
  })
}

function toPart(value: unknown): ScriptPart | undefined {
  if (typeof value === 'string') return { do: 'text', text: value }
  if (!isPlainObject(value)) return undefined
  const { call, arguments: args = {} } = value
  return typeof call === 'string' && isPlainObject(args)
    ? { do: 'call', toolName: call, arguments: args as JsonObject }
    : undefined
}
