import { type FileHandle, open } from 'node:fs/promises'
import type { StreamEvent } from '@skein/ai'
import { SkeinError } from '@skein/base'
import type { PaidAnswers } from '../replay/replay.ts'
import { completeLines } from './complete-lines-node.ts'
import type { CheckedThread } from './deploy-report.ts'

/** One line of a progress file. */
type Line =
  | { readonly type: 'check'; readonly id: string }
  | { readonly type: 'thread'; readonly thread: CheckedThread }
  | {
      readonly type: 'answer'
      readonly threadId: string
      readonly key: string
      readonly events: readonly StreamEvent[]
    }

/**
 * What a deploy check has done so far: a file of JSON lines, one for each checked thread and one for each paid answer. A
 * line is synced before the check continues, so that after a crash no answer is paid for again. Requests that were on
 * their way are: their answers never arrived.
 */
export class ProgressFile {
  readonly done: Map<string, CheckedThread> = new Map()
  readonly #answers = new Map<string, readonly StreamEvent[]>()
  readonly #file: FileHandle
  #last: Promise<unknown> = Promise.resolve()

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /**
   * Opens a file, and reads what it has. `id` names the check: the definitions and the options that decide about
   * results. Rejects with `INPUT_INVALID` for the file of another check.
   */
  static async open(path: string, id: string): Promise<ProgressFile> {
    const file = await open(path, 'a+', 0o600)
    const progress = new ProgressFile(file)
    let isNew = true
    let end = 0
    for await (const { text, endsAt } of completeLines(path)) {
      const line = parsed(text)
      if (isNew && line?.type !== 'check') {
        await file.close()
        throw new SkeinError(`The file ${path} is no progress file.`, {
          code: 'INPUT_INVALID',
          hint: 'Name another file.',
        })
      }
      if (!line) break
      end = endsAt
      isNew = false
      if (line.type === 'check' && line.id !== id) {
        await file.close()
        throw new SkeinError(`The progress file ${path} belongs to another check.`, {
          code: 'INPUT_INVALID',
          hint: 'Remove it, or name another file: the definitions or the options have changed since.',
        })
      }
      if (line.type === 'thread') progress.done.set(line.thread.original, line.thread)
      if (line.type === 'answer') progress.#answers.set(`${line.threadId} ${line.key}`, line.events)
    }
    // The process may have died while it wrote the last line.
    await file.truncate(end)
    if (isNew) await progress.#write({ type: 'check', id })
    return progress
  }

  /** The paid answers of one thread. */
  answersOf(threadId: string): PaidAnswers {
    return {
      get: (key) => this.#answers.get(`${threadId} ${key}`),
      set: (key, events) => this.#write({ type: 'answer', threadId, key, events }),
    }
  }

  async finish(thread: CheckedThread): Promise<void> {
    this.done.set(thread.original, thread)
    await this.#write({ type: 'thread', thread })
  }

  async close(): Promise<void> {
    await this.#last
    await this.#file.close()
  }

  #write(line: Line): Promise<void> {
    const written = this.#last.then(async () => {
      await this.#file.appendFile(`${JSON.stringify(line)}\n`)
      await this.#file.datasync()
    })
    this.#last = written.catch(() => undefined)
    return written
  }
}

function parsed(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line // the file is written by this class alone
  } catch {
    return undefined
  }
}
