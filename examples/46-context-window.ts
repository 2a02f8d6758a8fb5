/**
 * Keeps a long history within what a model takes, with the three middlewares that come along: clear
 * old outputs, keep the newest, summarise the rest. Calls and their results stay together.
 *
 * Prints:
 *
 *     pruned: 17 messages, 2 outputs cleared, 2 kept
 *     window of 6: 5 messages, the first is "Read file 3"
 *     summary and 4 recent: [Previous conversation summary] Two files were read.
 *     all three: 6 messages
 */

// #region program
import { agent, AgentState, type Middleware } from '@skein/agents'
import { pruneToolOutputs, slidingWindow, summarize } from '@skein/agents/middleware'
import { isToolResultMessage, llm, type Message } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { codeTools } from './code-tools.ts'

const { Read } = codeTools(new Map([0, 1, 2, 3].map((n) => [`${n}.txt`, 'thread '.repeat(200)])))
const reader = agent({
  model: scripted(({ messages }) => {
    const last = messages.at(-1)!
    if (last.type === 'tool_result') return says('Read.')
    return last.text.startsWith('Read') ? calls('read_file', { path: '0.txt' }) : says('Long.')
  }),
  tools: [Read],
})
let state = AgentState.initial()
for (const n of [0, 1, 2, 3]) state = (await reader.generate(`Read file ${n}`, state)).state

/** What the model is sent when it is asked something new. */
async function sent(...middleware: Middleware[]): Promise<readonly Message[]> {
  const model = scripted([says('Long.')])
  await agent({ ...reader, model, middleware }).generate('How long are they?', state)
  return model.requests[0]!.messages
}

const prune = pruneToolOutputs({ contextLimit: 1500, outputReserve: 100, protectRecent: 1000 })
const pruned = await sent(prune)
const outputs = pruned.filter(isToolResultMessage).flatMap(({ results }) => results)
const cleared = outputs.filter(({ result }) => String(result).startsWith('[Output cleared')).length
console.log(
  `pruned: ${pruned.length} messages, ${cleared} outputs cleared, ${outputs.length - cleared} kept`,
)

const windowed = await sent(slidingWindow(6))
console.log(`window of 6: ${windowed.length} messages, the first is "${windowed[0]?.text}"`)

const small = llm({ model: scripted(() => says('Two files were read.')) })
const summarised = await sent(summarize(small, { threshold: 500, keepRecent: 4 }))
console.log(`summary and 4 recent: ${summarised[0]?.text.replace('\n', ' ')}`)

const all = await sent(
  prune,
  slidingWindow(12),
  summarize(small, { threshold: 900, keepRecent: 4 }),
)
console.log(`all three: ${all.length} messages`)
// #endregion program
