/**
 * Looks into every call, changes requests on their way, and answers a question from memory the second
 * time. Middleware belongs to one instance and works for streams and for waiting calls alike.
 *
 * Prints:
 *
 *     info [llm] scripted/script started
 *     info [llm] scripted/script ended
 *     Forty-two.
 *     info [llm] scripted/script started
 *     info [llm] scripted/script ended
 *     Forty-two.
 *     the model was asked 1 time, as "Today is Monday."
 */

// #region program
import { llm, loggingMiddleware, type Middleware, type StreamEvent } from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'

const today: Middleware = {
  name: 'today',
  onRequest(context) {
    context.request = { ...context.request, system: 'Today is Monday.' }
  },
}

/** Remembers answers by question. What it gives instead of the model goes through the same loop. */
function memory(): Middleware {
  const answers = new Map<string, (readonly StreamEvent[])[]>()
  return {
    name: 'memory',
    async *wrapInference(request, next) {
      const question = request.messages.map(({ text }) => text).join('\n')
      const known = answers.get(question)
      if (known) return void (yield* known)
      const batches: (readonly StreamEvent[])[] = []
      for await (const batch of next(request)) {
        batches.push(batch)
        yield batch
      }
      answers.set(question, batches)
    },
  }
}

const logging = loggingMiddleware({ logger: (level, message) => console.log(level, message) })
const model = scripted([says('Forty-two.')])
const oracle = llm({ model, middleware: [logging, today, memory()] })

console.log((await oracle.generate('What is the answer?')).text)
console.log((await oracle.stream('What is the answer?').turn).text)
const [request] = model.requests
console.log(`the model was asked ${model.requests.length} time, as "${request?.system}"`)
// #endregion program
