import type { Finished } from './finished.ts'

/** Every message is taken once, in the order of its coming; none that was confirmed is missing. */
export function messagesAreTakenOnce({ world, threads, clients }: Finished): void {
  for (const { head, events, state } of threads.values()) {
    const queued: string[] = []
    const taken: string[] = []
    const news: string[] = []
    const withdrawn = new Set<string>()
    for (const event of events) {
      // News of earlier calls are made from the log, not sent.
      if (event.type === 'message_added' && event.metadata?.['kind'] === 'late_result') continue
      if (event.type === 'message_queued') queued.push(event.queueId)
      else if (event.type === 'message_unqueued') withdrawn.add(event.queueId)
      else if (event.type === 'message_added' && event.queueId !== undefined)
        // News of an earlier call is made from the log; nobody has sent it.
        (event.metadata?.['kind'] === 'late_result' ? news : taken).push(event.queueId)
    }
    if (new Set(news).size !== news.length)
      world.violate(`${head.id}: news was told twice: ${news.join()}`)
    const late = new Set([...state.queuedIds.keys()].filter((id) => !queued.includes(id)))
    if (new Set(queued).size !== queued.length)
      world.violate(`${head.id}: a message was queued twice: ${queued.join()}`)
    if (new Set(taken).size !== taken.length)
      world.violate(`${head.id}: a message was taken twice: ${taken.join()}`)
    const order = [...state.queuedIds].toSorted(([, a], [, b]) => a - b).map(([id]) => id)
    const expected = order.filter((id) => taken.includes(id))
    if (expected.join() !== taken.join())
      world.violate(`${head.id}: taken as ${taken.join()}, sent as ${expected.join()}`)
    for (const id of taken)
      if (!queued.includes(id) && !late.has(id)) world.violate(`${head.id}: ${id} was never sent`)
    const waits = state.queue.map(({ queueId }) => queueId)
    for (const id of order)
      if (!taken.includes(id) && !withdrawn.has(id) && !waits.includes(id))
        world.violate(`${head.id}: ${id} was lost`)
    if (waits.length > 0 && !state.terminated && state.stop !== 'stopped')
      world.violate(`${head.id}: ${waits.join()} still waits`)
  }
  for (const { threadId, messageId } of clients.sent)
    if (!threads.get(threadId)?.state.queuedIds.has(messageId))
      world.violate(`${threadId}: ${messageId} was confirmed and is not there`)
}
