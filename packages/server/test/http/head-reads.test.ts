import { afterEach, expect, test } from 'vitest'
import { memoryStore, type Store } from '@skein/runtime'
import { startKit, type Kit } from './http-kit.ts'

let kit: Kit | undefined

afterEach(async () => {
  await kit?.stop()
  kit = undefined
})

/** A store that notes the names of the reads of heads and of sums over trees. */
function countingStore(): { readonly store: Store; readonly reads: string[] } {
  const store = memoryStore()
  const reads: string[] = []
  const noted = new Set(['head', 'headByClientId', 'subtreeUsage', 'list'])
  return {
    reads,
    store: new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        return (...args: unknown[]) => {
          if (noted.has(String(name))) reads.push(String(name))
          return (member as (...args: unknown[]) => unknown).apply(target, args)
        }
      },
    }),
  }
}

/** Returns the reads of one POST of a message to a thread at rest, until its response. */
async function readsOfPost(who: 'ada' | 'acme'): Promise<readonly string[]> {
  const { store, reads } = countingStore()
  kit = await startKit({ runtime: { store } })
  const { id } = await kit.json<{ id: string }>(who, 'POST', '/threads', { agent: 'desk' })
  await kit.json(who, 'POST', `/threads/${id}/messages`, { text: 'Hello.' })
  await kit.runtime.idle()
  reads.length = 0
  const response = await kit.ask(who, 'POST', `/threads/${id}/messages`, { text: 'And again.' })
  const noted = [...reads]
  expect(response.status).toBe(202)
  return noted
}

test('POST /threads/:id/messages reads the head at most twice', async () => {
  // Once to see whose thread it is, once to fold the log to which the message is appended.
  expect(await readsOfPost('acme')).toEqual(['head', 'head'])
})

test('POST /threads/:id/messages sums no tree to check an owner', async () => {
  expect(await readsOfPost('ada')).not.toContain('subtreeUsage')
})

test('GET /threads/:id still answers with the sums of the tree', async () => {
  const { store, reads } = countingStore()
  kit = await startKit({ runtime: { store } })
  const { id } = await kit.json<{ id: string }>('ada', 'POST', '/threads', { agent: 'desk' })
  reads.length = 0
  const thread = await kit.json<{ tree: unknown }>('ada', 'GET', `/threads/${id}`)
  expect(thread.tree).toEqual({ tokens: 0, costUsd: 0, waiting: 0 })
  expect(reads).toContain('subtreeUsage')
})
