import { AsyncLocalStorage } from 'node:async_hooks'
import { url as inspectorUrl } from 'node:inspector'
import type { Worker } from 'node:worker_threads'
import { RuntimeError } from '../contract/error.ts'

/** User code that the runtime is about to run. */
export interface UserCode {
  readonly kind: 'tool' | 'hook' | 'effect' | 'handler'
  readonly name: string
  readonly threadId: string
}

/** Options of `createLoopWatch`. */
export interface LoopWatchOptions {
  /** How long the event loop may stand still before that is reported. */
  readonly blockedMs: number
  /** Called when the loop runs again. */
  readonly report: (error: RuntimeError, blocked: Blocked) => void
}

/** A time in which the event loop stood still. */
export interface Blocked {
  readonly blockedMs: number
  /** The user code that blocked the loop; if that is not known, all user code that ran during that time. */
  readonly suspects: readonly UserCode[]
  /** The function and line that was running, if it is known. */
  readonly place: string | undefined
  /** Whether the code was seen running; if not, the whole machine may have been slow. */
  readonly isCertain: boolean
}

/** Notices when user code keeps the event loop from running. */
export interface LoopWatch {
  /** Runs user code. If the code blocks the event loop, the report names it. */
  run<T>(code: UserCode, work: () => T): T
  start(): void
  stop(): void
}

/** How many pieces of user code that run at the same time have a slot for their name, so that reports can name them. */
const SLOTS = 64
const SLOT_BYTES = 256
/** Two more slots, for what the second thread found out: the name of the running code, and its function and line. */
const CULPRIT = SLOTS
const PLACE = SLOTS + 1

/** Positions in the array of numbers that both threads use. `FOUND` is 1 when the two slots above are filled. */
const BEATS = 0
const FOUND = 1

/** The slot of the user code that is running, kept across `await`. */
const running = new AsyncLocalStorage<number>()
const READER = 'skein.watchdog'

/**
 * Creates a watchdog. Once started, the main thread raises a counter four times in `blockedMs`. A second thread
 * waits for the counter to change. If it does not change, the second thread pauses the main thread for a moment
 * through the inspector, reads which user code is running and where, and writes that to standard error, because the
 * main thread is blocked. When the main thread runs again, it reports how long it stood still.
 *
 * The second thread starts after the first `blockedMs`, so that short programs do not pay for it. It does not keep
 * the process alive. It is not started while a debugger is attached, because a debugger stops the loop on purpose.
 */
export function createLoopWatch(options: LoopWatchOptions): LoopWatch {
  return new RunningLoopWatch(options)
}

class RunningLoopWatch implements LoopWatch {
  readonly #options: LoopWatchOptions
  readonly #numbers = new Int32Array(new SharedArrayBuffer(8))
  readonly #names = new Uint8Array(new SharedArrayBuffer((SLOTS + 2) * SLOT_BYTES))
  readonly #encoder = new TextEncoder()
  /** The user code that has begun and not ended, by slot. */
  readonly #open: (UserCode | undefined)[] = Array.from({ length: SLOTS })
  /** The user code that began since the counter was last raised, including code that has ended. */
  #recent: UserCode[] = []
  #timer: NodeJS.Timeout | undefined
  #startedAt = 0
  #beatAt = 0
  #worker: Worker | undefined

  constructor(options: LoopWatchOptions) {
    this.#options = options
  }

  start(): void {
    this.#startedAt = this.#beatAt = performance.now()
    this.#timer ??= setInterval(() => this.#beat(), this.#options.blockedMs / 4).unref()
  }

  run<T>(code: UserCode, work: () => T): T {
    const slot = this.#enter(code)
    const leave = (): void => this.#leave(slot)
    let result: T
    try {
      result = running.run(slot, work)
    } catch (error) {
      leave()
      throw error
    }
    if (result instanceof Promise) result.then(leave, leave)
    else leave()
    return result
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    void this.#worker?.terminate()
    this.#worker = undefined
  }

  /** Returns the slot of the code; -1 when all are taken. */
  #enter(code: UserCode): number {
    const slot = this.#open.indexOf(undefined)
    if (this.#recent.length < SLOTS) this.#recent.push(code)
    if (slot < 0) return slot
    this.#open[slot] = code
    const at = slot * SLOT_BYTES
    const space = this.#names.subarray(at + 1, at + SLOT_BYTES)
    this.#names[at] = this.#encoder.encodeInto(nameOf(code), space).written
    return slot
  }

  #leave(slot: number): void {
    if (slot < 0) return
    this.#open[slot] = undefined
    this.#names[slot * SLOT_BYTES] = 0
  }

  #beat(): void {
    const { blockedMs: longest, report } = this.#options
    const now = performance.now()
    const interval = longest / 4
    const blockedMs = Math.round(now - this.#beatAt - interval)
    this.#beatAt = now
    const recent = this.#recent
    this.#recent = this.#open.filter((code) => code !== undefined)
    const isFound = Atomics.exchange(this.#numbers, FOUND, 0) === 1
    Atomics.add(this.#numbers, BEATS, 1)
    Atomics.notify(this.#numbers, BEATS)
    if (!this.#worker && now - this.#startedAt >= longest) this.#startWorker()
    if (blockedMs < longest) return
    const name = isFound ? this.#text(CULPRIT) : undefined
    const place = isFound ? this.#text(PLACE) : undefined
    // `name` may be only the beginning of the code's name, because a slot has a limited size.
    const culprit = name && recent.find((code) => nameOf(code).startsWith(name))
    const suspects = culprit ? [culprit] : recent
    const details = { blockedMs, suspects, place, isCertain: Boolean(culprit) }
    report(blockedError(details), details)
  }

  #text(slot: number): string | undefined {
    const at = slot * SLOT_BYTES
    const bytes = this.#names.slice(at + 1, at + 1 + this.#names[at]!)
    return bytes.length === 0 ? undefined : new TextDecoder().decode(bytes)
  }

  #startWorker(): void {
    if (inspectorUrl() !== undefined) return
    Object.defineProperty(globalThis, READER, {
      value: () => running.getStore() ?? -1,
      configurable: true,
    })
    const { blockedMs } = this.#options
    const memory = { numbers: this.#numbers, names: this.#names }
    const workerData = { ...memory, blockedMs, SLOTS, SLOT_BYTES, READER }
    const threads = process.getBuiltinModule('node:worker_threads') // loaded here, because it takes 3 ms
    this.#worker = new threads.Worker(WATCH, { eval: true, workerData, env: {}, execArgv: [] })
    this.#worker.unref()
    // If the second thread cannot run, the main thread still reports, only later and less exactly.
    this.#worker.on('error', () => undefined)
  }
}

function nameOf({ kind, name, threadId }: UserCode): string {
  return `the ${kind} "${name}" of thread ${threadId}`
}

function blockedError({ blockedMs, suspects, place }: Blocked): RuntimeError {
  const names = suspects.map(nameOf).join(', ')
  const what =
    suspects.length === 0
      ? 'no tool, hook or effect was running'
      : suspects.length === 1
        ? `${names} was running`
        : `one of these was running: ${names}`
  const where = place === undefined ? '' : ` (${place})`
  return new RuntimeError(`The event loop stood still for ${blockedMs} ms; ${what}${where}.`, {
    code: 'LOOP_BLOCKED',
    hint: 'Move the work into a worker with `inWorker`, or split it so that it awaits in between.',
  })
}

/**
 * The second thread. It is a string, because a bundle has no separate file for a worker. It writes with
 * `writeSync`, because the streams of a worker go through the main thread, which is blocked.
 *
 * If this thread itself stood still for much longer than it meant to wait, the whole process was
 * suspended, e.g. with its machine, and no user code is to blame.
 */
const WATCH = `
const { Session } = require('node:inspector')
const { writeSync } = require('node:fs')
const { numbers, names, blockedMs, SLOTS, SLOT_BYTES, READER } = require('node:worker_threads').workerData
const nameAt = (slot) => {
  const at = slot * SLOT_BYTES
  return new TextDecoder().decode(names.slice(at + 1, at + 1 + names[at]))
}
const fill = (slot, text) => {
  const at = slot * SLOT_BYTES
  names[at] = new TextEncoder().encodeInto(text, names.subarray(at + 1, at + SLOT_BYTES)).written
}
// Pauses the main thread, reads the slot of the running code and its place, and lets it continue.
const look = (seen) =>
  new Promise((resolve) => {
    const session = new Session()
    const files = new Map()
    const end = (found) => {
      clearInterval(timer)
      session.disconnect()
      resolve(found)
    }
    // The loop may run again before the pause takes effect, e.g. after a native call.
    const timer = setInterval(() => Atomics.load(numbers, 0) === seen || end(undefined), 50)
    session.on('Debugger.scriptParsed', ({ params }) => files.set(params.scriptId, params.url))
    session.on('Debugger.paused', ({ params: { callFrames } }) => {
      const place = callFrames
        .map(({ functionName, url, location: { scriptId, lineNumber } }) => ({
          url: url || files.get(scriptId) || '',
          text: (functionName || 'anonymous') + ' at ' +
            (url || files.get(scriptId) || '').split('/').slice(-3).join('/') + ':' + (lineNumber + 1),
        }))
        .find(({ url }) => url !== '' && !url.startsWith('node:'))
      // In frames of Node itself not even \`Symbol\` is in scope.
      const expression = 'globalThis[' + JSON.stringify(READER) + ']()'
      const frame = { callFrameId: callFrames[0].callFrameId, expression, returnByValue: true }
      session.post('Debugger.evaluateOnCallFrame', frame, (error, answer) =>
        end({ slot: error ? -1 : answer.result.value, place: place ? place.text : '' }),
      )
    })
    try {
      session.connectToMainThread()
      session.post('Debugger.enable')
      session.post('Debugger.pause')
    } catch {
      end(undefined)
    }
  })
const watch = async () => {
  for (;;) {
    const seen = Atomics.load(numbers, 0)
    const from = performance.now()
    if (Atomics.wait(numbers, 0, seen, blockedMs) !== 'timed-out') continue
    if (performance.now() - from > blockedMs * 2) continue
    const open = []
    for (let slot = 0; slot < SLOTS; slot++) if (names[slot * SLOT_BYTES] > 0) open.push(slot)
    if (open.length > 0) {
      const found = await look(seen)
      const slot = found && typeof found.slot === 'number' ? found.slot : -1
      const place = found ? found.place : ''
      const suspects = (slot >= 0 ? [slot] : open).map(nameAt)
      const what = suspects.length === 1 ? suspects[0] : 'one of ' + suspects.join(', ')
      const where = place === '' ? '' : ' (' + place + ')'
      const text = 'skein: the event loop has been blocked for ' + blockedMs + ' ms: ' + what + where
      fill(SLOTS, slot >= 0 ? suspects[0] : '')
      fill(SLOTS + 1, place)
      if (Atomics.load(numbers, 0) === seen) Atomics.store(numbers, 1, 1)
      try {
        writeSync(2, text.replace(/\\p{C}/gu, '?') + '\\n')
      } catch {
        // Standard error is closed or full; the main thread reports later.
      }
    }
    Atomics.wait(numbers, 0, seen)
  }
}
void watch()
`
