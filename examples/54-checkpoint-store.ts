/**
 * A checkpoint store of your own, checked by the tests that come along, and one that is encrypted.
 *
 * Prints:
 *
 *     12 of 12 tests passed
 *     kept: checkpoint:user-123-task-456
 *     in plain: yes, encrypted: no
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { type CheckpointStore, encryptedCheckpoints } from '@skein/agents/checkpoint'
import { describeCheckpointStore } from '@skein/agents/testing'
import { says, scripted } from '@skein/ai/testing'

/** As much of a Redis client as is needed here. */
interface RedisClient {
  get(key: string): Promise<string | null>
  set(key: string, value: string): Promise<void>
  del(key: string): Promise<void>
  keys(pattern: string): Promise<string[]>
}

function redisInMemory(data = new Map<string, string>()): RedisClient {
  return {
    get: async (key) => data.get(key) ?? null,
    set: async (key, value) => void data.set(key, value),
    del: async (key) => void data.delete(key),
    keys: async (pattern) => [...data.keys()].filter((key) => key.startsWith(pattern.slice(0, -1))),
  }
}

function redisCheckpoints(client: RedisClient): CheckpointStore {
  return {
    save: (sessionId, state) => client.set(`checkpoint:${sessionId}`, JSON.stringify(state)),
    load: async (sessionId) => {
      const data = await client.get(`checkpoint:${sessionId}`)
      return data ? JSON.parse(data) : null
    },
    delete: (sessionId) => client.del(`checkpoint:${sessionId}`),
    list: async () => {
      const keys = await client.keys('checkpoint:*')
      return keys.map((key) => key.replace('checkpoint:', ''))
    },
  }
}

// In a test file: describeCheckpointStore({ describe, test }, …) with those of your test runner.
const tests: Promise<void>[] = []
describeCheckpointStore(
  { describe: (_, body) => body(), test: (_, body) => tests.push(body()) },
  { name: 'redis', open: () => redisCheckpoints(redisInMemory()) },
)
const passed = (await Promise.allSettled(tests)).filter(({ status }) => status === 'fulfilled')
console.log(`${passed.length} of ${tests.length} tests passed`)

const client = redisInMemory()
const helper = agent({
  model: scripted(() => says('The code is 0000.')),
  checkpoints: redisCheckpoints(client),
  sessionId: 'user-123-task-456',
})
await helper.generate('What is the code?', AgentState.initial())
await helper.flush()
console.log(`kept: ${(await client.keys('checkpoint:*')).join()}`)

const sealed = redisInMemory()
const key = crypto.getRandomValues(new Uint8Array(32))
const careful = agent({
  ...helper,
  checkpoints: encryptedCheckpoints(redisCheckpoints(sealed), { key }),
})
await careful.generate('What is the code?', AgentState.initial())
await careful.flush()
const shows = async (where: RedisClient): Promise<string> =>
  (await where.get('checkpoint:user-123-task-456'))?.includes('0000.') ? 'yes' : 'no'
console.log(`in plain: ${await shows(client)}, encrypted: ${await shows(sealed)}`)
// #endregion program
