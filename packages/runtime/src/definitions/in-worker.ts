import { isPlainObject, type JsonValue } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'

/** Limits of a worker's memory in MB, as `new Worker` takes them. */
interface ResourceLimits {
  readonly maxOldGenerationSizeMb?: number
  readonly maxYoungGenerationSizeMb?: number
  readonly codeRangeSizeMb?: number
  readonly stackSizeMb?: number
}

/** Options of `inWorker`. */
export interface InWorkerOptions {
  /**
   * Limits of memory, as for `new Worker`. Default: 512 MB for objects (`maxOldGenerationSizeMb`). A worker
   * that needs more ends, and its call fails; the process continues.
   */
  readonly resourceLimits?: ResourceLimits
}

/** The second argument of the function that a worker's module exports. */
export interface WorkerToolContext {
  readonly toolCallId: string
  readonly toolName: string
  /** A key that is the same for every attempt of one call, also after a crash. */
  readonly idempotencyKey: string
  /** The prompt's settings for this tool. */
  readonly options?: Readonly<Record<string, unknown>>
}

const MAX_OLD_MB = 512

/**
 * Runs a tool in a worker thread, so that code that computes for long blocks no other work. The module's default
 * export is called with the arguments and a `WorkerToolContext`; arguments and result are JSON. When the call
 * is stopped or takes longer than its `timeoutMs`, the worker is ended, even in an endless loop. Each call has
 * a worker of its own.
 *
 *     tool({ …, timeoutMs: 5_000, run: inWorker(new URL('./render.ts', import.meta.url)) })
 *     defineTool({ …, timeoutMs: 5_000, execute: inWorker(new URL('./render.ts', import.meta.url)) })
 *
 * The worker has no `ThreadState`: return what the thread should have, or use an ordinary tool for it.
 */
export function inWorker<Result = JsonValue>(
  module: URL,
  { resourceLimits }: InWorkerOptions = {},
): (first: unknown, second: unknown, third?: unknown) => Promise<Result> {
  if (!(module instanceof URL))
    throw new RuntimeError('The module of a worker must be a URL.', {
      code: 'DEFINITION_INVALID',
      hint: "inWorker(new URL('./module.ts', import.meta.url))",
    })
  const limits = { maxOldGenerationSizeMb: MAX_OLD_MB, ...resourceLimits }
  // `tool()` calls `run(args, context)`, `defineTool` calls `execute(state, args, context)`.
  return async (first, second, third) => {
    const [args, context] = third === undefined ? [first, second] : [second, third]
    const text = await runWorker(module, { args, context: contextOf(context), limits })
    return JSON.parse(text) as Result // the worker answers with JSON
  }
}

interface CallContext extends Partial<WorkerToolContext> {
  readonly signal?: AbortSignal
}

function contextOf(context: unknown): CallContext {
  return isPlainObject(context) ? (context as CallContext) : {}
}

function runWorker(
  module: URL,
  {
    args,
    context,
    limits,
  }: { readonly args: unknown; readonly context: CallContext; readonly limits: ResourceLimits },
): Promise<string> {
  const { signal, toolCallId = '', toolName = '', options } = context
  const { idempotencyKey = toolCallId } = context
  signal?.throwIfAborted()
  const input = JSON.stringify({ args, context: { toolCallId, toolName, idempotencyKey, options } })
  const threads = process.getBuiltinModule('node:worker_threads') // loaded here, because it takes 3 ms
  const worker = new threads.Worker(BOOT, {
    eval: true,
    workerData: { url: module.href, input },
    resourceLimits: limits,
  })
  return new Promise<string>((resolve, reject) => {
    const fail = (why: string, cause?: unknown): void =>
      reject(
        new RuntimeError(`The worker of the tool "${toolName}" ${why}.`, {
          code: 'TOOL_WORKER_FAILED',
          cause,
        }),
      )
    const abort = (): void => {
      reject(signal?.reason as Error)
      void worker.terminate()
    }
    signal?.addEventListener('abort', abort, { once: true })
    worker.on('message', (answer: WorkerAnswer) => {
      if ('result' in answer) resolve(answer.result)
      else reject(thrown(answer.error))
      void worker.terminate()
    })
    worker.on('error', (error: Error & { readonly code?: unknown }) =>
      error.code === 'ERR_WORKER_OUT_OF_MEMORY'
        ? fail(`needed more memory than its limit of ${limits.maxOldGenerationSizeMb} MB`, error)
        : fail(`ended with an error: ${error.message}`, error),
    )
    worker.on('exit', (code) => {
      signal?.removeEventListener('abort', abort)
      // Calling `fail` has no effect if the worker has answered before.
      fail(`ended with exit code ${code} before it had a result`)
    })
  })
}

/** The message of a worker: the result as JSON text, or the error that the tool threw. */
type WorkerAnswer =
  | { readonly result: string }
  | { readonly error: { readonly name: string; readonly message: string; readonly stack?: string } }

/** Makes the tool's error again, so that the model reads the same text as from a tool without a worker. */
function thrown(error: Extract<WorkerAnswer, { error: object }>['error']): Error {
  const copy = new Error(error.message)
  copy.name = error.name
  if (error.stack !== undefined) copy.stack = error.stack
  return copy
}

/**
 * The first lines of the worker. They are a string, because a bundled package has no file of its own for
 * them. Reading `context.state` throws, so that a tool that needs the thread fails with a clear error instead
 * of seeing `undefined`.
 */
const BOOT = `
const { parentPort, workerData } = require('node:worker_threads')
const { args, context } = JSON.parse(workerData.input)
Object.defineProperty(context, 'state', {
  get() {
    throw new Error('A tool in a worker has no ThreadState. Return what the thread should have, or run the tool without a worker.')
  },
})
import(workerData.url)
  .then(async (module) => {
    if (typeof module.default !== 'function')
      throw new Error('The module ' + workerData.url + ' has no function as its default export.')
    const result = JSON.stringify((await module.default(args, context)) ?? null)
    if (result === undefined) throw new Error('The result of the tool is not JSON.')
    parentPort.postMessage({ result })
  })
  .catch((error) => {
    const { name = 'Error', message = String(error), stack } = error instanceof Error ? error : {}
    parentPort.postMessage({ error: { name, message, stack } })
  })
`
