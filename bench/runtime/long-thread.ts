import { sqliteStore, type Commit, type StoredEvent } from '@skein/runtime'
import { join } from 'node:path'
import { newFolder } from './clients/client.ts'
import { startRuntime } from './clients/skein.ts'
import { startMock } from './start-mock.ts'

type Event = StoredEvent['event']

/** A folder with a thread of at least so many events: two turns with a tool round, the second one repeated. */
export async function longThread(
  events: number,
): Promise<{ readonly folder: string; readonly id: string; readonly messages: number }> {
  const folder = newFolder()
  const lookUp = (id: number): object => ({ id, title: 'A thread', tags: ['long', 'red'] })
  const runtime = await startRuntime({ baseUrl: await startMock(), folder, lookUp })
  const { id } = await runtime.threads.create({ agent: 'helper' })
  await runtime.threads.run(id, 'What is known? (1)')
  const { length } = await runtime.store.events(id)
  await runtime.threads.run(id, 'What is known? (2)')
  await runtime.stop()
  const store = sqliteStore({ path: join(folder, 'skein.db') })
  const log = (await store.events(id)).map(({ event }) => event)
  const [before, turn] = [log.slice(0, length), log.slice(length)]
  const copies = Math.ceil((events - log.length) / turn.length)
  for (let first = 1; first <= copies; first += 100) {
    const numbers = Array.from({ length: Math.min(100, copies - first + 1) }, (_, at) => first + at)
    const append = numbers.flatMap((copy) => copyOf(turn, before, copy))
    const commit: Commit = { point: 'bench', threads: [{ id, append }] }
    await store.commit(commit)
  }
  await store.close()
  return { folder, id, messages: (copies + 2) * 3 }
}

/** The turn with other ids. What it names of the turn before, it names of the copy before. */
function copyOf(turn: readonly Event[], before: readonly Event[], copy: number): Event[] {
  const own = lastIds(turn)
  const earlier = lastIds(before)
  let text = JSON.stringify(turn)
  const named = earlier.map((id, place) => [id, numbered(own[place]!, copy - 1)] as const)
  const ids = new Set(text.match(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{22}|call_\d+/g))
  for (const [id] of named) ids.delete(id)
  for (const id of ids) text = text.replaceAll(id, numbered(id, copy))
  for (const [id, other] of named) text = text.replaceAll(id, other)
  // Each request repeats four messages more than the one a turn before.
  text = text.replace(/"keeps":(\d+)/g, (_, keeps: string) => `"keeps":${Number(keeps) + copy * 4}`)
  return JSON.parse(text) as Event[]
}

function numbered(id: string, copy: number): string {
  return copy === 0 ? id : `${id.slice(0, -6)}${String(copy).padStart(6, '0')}${id.slice(-1)}`
}

/** The ids of the last request and the last message, which the next turn names. */
function lastIds(turn: readonly Event[]): readonly string[] {
  const request = turn.findLast((event) => event.type === 'model_requested')
  const message = turn.findLast((event) => event.type === 'message_added')
  return [request!.logId, message!.message.id]
}
