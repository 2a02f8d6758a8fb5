/**
 * A server for the AI SDK's `useChat` in twenty lines: one call turns an agent's run into the response. Tools
 * that yield show their progress on the page, and an approval waits in the stored state until the page answers.
 *
 * Prints:
 *
 *     start, start-step, tool-input-start, tool-input-delta, tool-input-available, tool-approval-request,
 *     finish-step, finish
 *     the state waits for: pay
 *     tool-output-available, start-step, text: Paid 5 €.
 */

// #region program
import { agent, AgentState } from '@skein/agents'
import { defer, tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { agentUIResponse, decodeUIStream, uiAnswers, type UIMessage } from '@skein/threads/ai-sdk'
import { z } from 'zod'

const pay = tool({
  name: 'pay',
  description: 'Pays an amount.',
  parameters: z.object({ euros: z.number() }),
  approval: ({ euros }) => defer({ kind: 'approval', request: { euros } }),
  run: async function* ({ euros }) {
    yield 'asking the bank'
    yield `paid ${euros} €`
  },
})
const clerk = agent({
  model: scripted([calls('pay', { euros: 5 }), says('Paid 5 €.')]),
  tools: [pay],
})

const chats = new Map<string, AgentState>()

/** `POST /chat`, as the transport of `useChat` sends it. */
async function chat(request: Request): Promise<Response> {
  const { id, messages } = (await request.json()) as { id: string; messages: UIMessage[] }
  const state = chats.get(id) ?? AgentState.initial()
  const last = messages.at(-1)!
  const text = last.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const run =
    last.role === 'user'
      ? clerk.stream(text, state)
      : clerk.resumeStream(state, uiAnswers(messages)) // the person has answered an approval
  void run.result.then((result) => chats.set(id, result.state)).catch(() => {})
  return agentUIResponse(run, last.role === 'user' ? {} : { messageId: last.id })
}
// #endregion program

const post = async (messages: unknown): Promise<ReturnType<typeof decodeUIStream>> => {
  const body = JSON.stringify({ id: 'chat-1', messages })
  const response = await chat(new Request('http://localhost/chat', { method: 'POST', body }))
  return decodeUIStream(await response.text())
}
const question = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Pay 5 €.' }] }
const first = await post([question])
const types = first.map(({ type }) => type)
console.log(`${types.slice(0, 6).join(', ')},\n${types.slice(6).join(', ')}`)
const [waiting] = chats.get('chat-1')!.interrupts
console.log(`the state waits for: ${waiting ? 'pay' : 'nothing'}`)
const answered = {
  type: 'tool-pay',
  state: 'approval-responded',
  toolCallId: waiting!.toolCallId,
  input: { euros: 5 },
  approval: { id: waiting!.id, approved: true },
}
const second = await post([question, { id: 'a1', role: 'assistant', parts: [answered] }])
const words = second.flatMap((chunk) => (chunk.type === 'text-delta' ? [chunk.delta] : []))
const shown = ['tool-output-available', 'start-step'].filter((type) =>
  second.some((chunk) => chunk.type === type),
)
console.log(`${shown.join(', ')}, text: ${words.join('')}`)
