/**
 * The three ways to keep a history short, written by hand as middleware: how the ready-made ones of
 * `46-context-window.ts` work inside. What a cut leaves behind is fixed before the model sees it.
 *
 * Prints:
 *
 *     everything: 17 messages, about 1,800 tokens
 *     pruned: 17 messages, 3 outputs cleared
 *     window: 6 messages, every call has its result: true
 *     summary: [Previous conversation summary] They read four files.
 */

// #region program
import { agent, AgentState, type Middleware } from '@skein/agents'
import {
  isAssistantMessage,
  isToolResultMessage,
  llm,
  ToolResultMessage,
  UserMessage,
  type LLMInstance,
  type Message,
} from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { codeTools } from './code-tools.ts'

/** About four characters are a token. */
const estimate = (message: Message): number => JSON.stringify(message).length / 4
const sum = (messages: readonly Message[]): number =>
  messages.reduce((total, message) => total + estimate(message), 0)

const pruneToolOutputs: Middleware = {
  name: 'prune-tool-outputs',
  before: async (context) => {
    const CONTEXT_LIMIT = 1600
    const OUTPUT_RESERVE = 160
    const PROTECT_RECENT = 400
    if (sum(context.state.messages) <= CONTEXT_LIMIT - OUTPUT_RESERVE) return context

    const messages = [...context.state.messages]
    let recent = 0
    for (let i = messages.length - 1; i >= 0; i--) {
      const message = messages[i]!
      recent += estimate(message)
      if (recent > PROTECT_RECENT && isToolResultMessage(message))
        messages[i] = new ToolResultMessage(
          message.results.map((result) => ({ ...result, result: '[Output cleared]' })),
        )
    }
    return { ...context, state: context.state.withContext(messages) }
  },
}

const slidingWindow: Middleware = {
  name: 'sliding-window',
  before: async (context) => {
    const MAX_MESSAGES = 6
    const { messages } = context.state
    if (messages.length <= MAX_MESSAGES) return context
    // May cut between a call and its result: the result is then dropped.
    return { ...context, state: context.state.withContext(messages.slice(-MAX_MESSAGES)) }
  },
}

const summarizeOldContext = (summarizer: LLMInstance): Middleware => ({
  name: 'summarize-context',
  before: async (context) => {
    const THRESHOLD = 1000
    const KEEP_RECENT = 4
    const { messages } = context.state
    if (sum(messages) <= THRESHOLD) return context
    const old = messages.slice(0, -KEEP_RECENT)
    const recent = messages.slice(-KEEP_RECENT)
    const summary = await summarizer.generate(
      `Summarize this conversation, preserving key facts:\n${old.map((one) => JSON.stringify(one)).join('\n')}`,
    )
    const first = new UserMessage(`[Previous conversation summary]\n${summary.response.text}`)
    return { ...context, state: context.state.withContext([first, ...recent]) }
  },
})

const { Read } = codeTools(new Map([['a.txt', 'thread '.repeat(150)]]))
const reader = agent({
  model: scripted(({ messages }) =>
    messages.at(-1)?.type === 'tool_result' ? says('Read.') : calls('read_file', { path: 'a.txt' }),
  ),
  tools: [Read],
})
let state = AgentState.initial()
for (const n of [1, 2, 3, 4]) state = (await reader.generate(`Read it, ${n}.`, state)).state

/** What the model is sent for a new question. */
async function sent(...middleware: Middleware[]): Promise<readonly Message[]> {
  const model = scripted([says('Long.')])
  await agent({ ...reader, model, middleware }).generate('How long is it?', state)
  return model.requests[0]!.messages
}

const all = await sent()
const tokens = Math.round(sum(all) / 100) * 100
console.log(`everything: ${all.length} messages, about ${tokens.toLocaleString('en')} tokens`)

const pruned = await sent(pruneToolOutputs)
const cleared = pruned.filter(
  (one) => isToolResultMessage(one) && one.results[0]?.result === '[Output cleared]',
)
console.log(`pruned: ${pruned.length} messages, ${cleared.length} outputs cleared`)

const window = await sent(slidingWindow)
const asked = window.flatMap((one) => (isAssistantMessage(one) ? (one.toolCalls ?? []) : []))
const answered = window.flatMap((one) => (isToolResultMessage(one) ? one.results : []))
console.log(
  `window: ${window.length} messages, every call has its result: ${asked.length === answered.length}`,
)

const small = llm({ model: scripted([says('They read four files.')]), params: { max_tokens: 500 } })
const [first] = await sent(summarizeOldContext(small))
console.log(`summary: ${first?.text.replace('\n', ' ')}`)
// #endregion program
