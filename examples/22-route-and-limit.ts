/**
 * Sends requests with tools to a large model and the rest to a small one, and keeps the small one
 * within ten requests a minute, of which two may wait.
 *
 * Prints:
 *
 *     small: Hi!
 *     large: Nothing to search for.
 *     20 asked at the same time: 9 answered, 2 wait, 9 refused with RATE_LIMITED
 */

// #region program
import { isUPPError, llm, type Tool } from '@skein/ai'
import { rateLimit, RateLimiter, route } from '@skein/ai/routing'
import { says, scripted } from '@skein/ai/testing'

const limiter = new RateLimiter({ requests: 10, intervalMs: 60_000, maxQueue: 2 })
const small = rateLimit(
  scripted(() => says('Hi!')),
  { limiter },
)
const large = scripted(() => says('Nothing to search for.'))

const model = route([
  { model: large, when: (request) => 'tools' in request && request.tools.length > 0 },
  { model: small },
])
const chat = llm({ model })
const search: Tool = {
  name: 'search',
  description: 'Searches the web.',
  parameters: { type: 'object', properties: { query: { type: 'string' } } },
  run: () => [],
}

console.log('small:', (await chat.generate('Hello!')).text)
console.log('large:', (await chat.with({ tools: [search] }).generate('Hello!')).text)

const controller = new AbortController()
const counts = { answered: 0, waiting: 0, refused: 0 }
const calls = Array.from({ length: 20 }, async () => {
  counts.waiting += 1
  try {
    await chat.with({ signal: controller.signal }).generate('Hello!')
    counts.answered += 1
  } catch (error) {
    if (isUPPError(error) && error.code === 'RATE_LIMITED') counts.refused += 1
  }
  counts.waiting -= 1
})
await new Promise((resolve) => setTimeout(resolve, 50))
const { answered, waiting, refused } = counts
console.log(
  `20 asked at the same time: ${answered} answered, ${waiting} wait, ${refused} refused with RATE_LIMITED`,
)
controller.abort() // who waits can leave
await Promise.all(calls)
// #endregion program
