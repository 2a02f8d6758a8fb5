import type { RequestLog } from './kernel-state.ts'
import type { PackedLog } from './snapshot.ts'

/** The ids of all messages in the order of the thread; results follow their message. */
export class IdOrder {
  readonly #ids: string[] = []
  /** The index of each entry's message in the list of ids. */
  readonly #starts: number[] = []

  add(id: string, results: string | undefined): void {
    this.#starts.push(this.#ids.push(id) - 1)
    if (results !== undefined) this.#ids.push(results)
  }

  /** Replaces ids that follow each other in the thread by runs [first index, count]. */
  pack(log: RequestLog | undefined, places: ReadonlyMap<string, number>): PackedLog | undefined {
    if (!log) return undefined
    const { messageIds, ...rest } = log
    const ids: (string | [number, number])[] = []
    let next = -1
    for (const id of messageIds) {
      const lastRun = ids.at(-1)
      if (this.#ids[next] === id && typeof lastRun === 'object') lastRun[1]++
      else {
        next = this.#starts[places.get(id) ?? -1] ?? -1
        ids.push(next < 0 ? id : [next, 1])
      }
      if (next >= 0) next++
    }
    return { ...rest, ids }
  }

  unpack(log: PackedLog | undefined): RequestLog | undefined {
    if (!log) return undefined
    const { ids, ...rest } = log
    const messageIds = ids.flatMap((one) =>
      typeof one === 'string' ? one : this.#ids.slice(one[0], one[0] + one[1]),
    )
    return { ...rest, messageIds }
  }
}
