/**
 * A strategy of your own: one inference, then a second one that reviews it. Hooks, checkpoints and
 * middleware of the agent work with it as with the built-in ones.
 *
 * Prints:
 *
 *     step 1 begins
 *     step 1 ends with 4 messages
 *     Better: no bugs.
 *     streamed: Better: no bugs.
 */

// #region program
import { agent, AgentState, type ExecutionContext, type ExecutionStrategy } from '@skein/agents'
import type { AgentStreamEvent, ExecutionResult } from '@skein/agents'
import { says, scripted } from '@skein/ai/testing'

/** The work, once: it tells each event and gives the result. */
async function* draftAndReview({
  llm,
  input,
  state,
  strategy,
}: ExecutionContext): AsyncGenerator<AgentStreamEvent, ExecutionResult> {
  await strategy.onStepStart?.(1, state)

  const draft = await llm.generate(state.messages, input)
  const drafted = state.withMessages(draft.messages)

  const review = llm.stream(drafted.messages, 'Can it be better? Answer with the final version.')
  for await (const upp of review) yield { source: 'upp', upp }
  const turn = await review.turn
  const newState = drafted.withMessages(turn.messages).withStep(1)

  await strategy.onStepEnd?.(1, { turn, state: newState })
  return { turn, state: newState }
}

const reviewed: ExecutionStrategy = {
  name: 'reviewed',

  async execute(context) {
    const work = draftAndReview(context)
    for (;;) {
      const next = await work.next()
      if (next.done) return next.value
    }
  },

  stream(context) {
    const controller = new AbortController()
    const work = draftAndReview({ ...context, signal: controller.signal })
    let resolve: (result: ExecutionResult) => void = () => {}
    let reject: (error: unknown) => void = () => {}
    const result = new Promise<ExecutionResult>((...settle) => ([resolve, reject] = settle))
    result.catch(() => {}) // anyone who reads the events sees the failure there
    return {
      result,
      abort: () => controller.abort(),
      async *[Symbol.asyncIterator]() {
        try {
          resolve(yield* work)
        } catch (error) {
          reject(error)
          throw error
        }
      },
    }
  },
}

const writer = agent({
  model: scripted(({ messages }) => says(messages.length > 1 ? 'Better: no bugs.' : 'Bugs.')),
  execution: reviewed,
  strategy: {
    onStepStart: (step) => console.log(`step ${step} begins`),
    onStepEnd: (step, { state }) =>
      console.log(`step ${step} ends with ${state.messages.length} messages`),
  },
})
const { turn } = await writer.generate('Write code', AgentState.initial())
console.log(turn.text)

const stream = agent({ ...writer, strategy: {} }).stream('Write code', AgentState.initial())
let text = ''
for await (const { upp } of stream) if (upp?.type === 'text_delta') text += upp.delta.text
console.log(`streamed: ${text}`)
// #endregion program
