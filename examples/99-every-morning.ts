/**
 * Work by the calendar: every morning at nine in Berlin the thread gets a message, and the agent answers it.
 * The calendar takes care of daylight saving time. No day is waited for: the test moves the time.
 *
 * Prints:
 *
 *     next: 2026-03-28T08:00:00.000Z
 *     next: 2026-03-29T07:00:00.000Z
 *     Good morning! 3 orders are open.
 *     Good morning! 3 orders are open.
 *     next: none
 */

import { createRuntime, defineAgent } from '@skein/runtime'
import { manualTimers } from '@skein/runtime/testing'
import { calls, says, scripted } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
// #region program
import { defineEffect, defineTool } from '@skein/runtime'
import { z } from 'zod'

const wake = defineEffect({
  name: 'wake',
  args: z.object({ text: z.string() }),
  execute: (state, { text }) => void state.queueMessage({ role: 'user', content: text }),
})
const everyMorning = defineTool({
  name: 'every_morning',
  description: 'Reports the open orders every morning at nine.',
  args: z.object({}),
  risk: 'write_low_risk',
  execute: (state) => {
    const at = { cron: '0 9 * * *', timeZone: 'Europe/Berlin', key: 'morning' }
    state.scheduleEffect('wake', { text: 'Report the open orders.' }, at)
    return 'Every morning at nine.'
  },
})
// #endregion program

const model = scripted(({ messages }) => {
  const last = messages.at(-1)
  if (last?.type === 'tool_result') return says('Every morning at nine, then.')
  return last?.type === 'user' && last.text === 'Report the open orders.'
    ? says('Good morning! 3 orders are open.')
    : calls('every_morning', {})
})
const clerk = defineAgent({ name: 'clerk', instructions: 'Report.', model, tools: [everyMorning] })

const timers = manualTimers(manualClock(Date.parse('2026-03-27T12:00:00Z')))
const runtime = await createRuntime({ agents: [clerk], effects: [wake], clock: timers, timers })
await runtime.start()
const { id } = await runtime.threads.create({ agent: 'clerk' })
await runtime.threads.run(id, 'Tell me every morning what is open.')

const HOUR = 3_600_000
const next = async (): Promise<void> => {
  // #region list
  const [effect] = await runtime.threads.effects.list(id)
  console.log(`next: ${effect?.at ?? 'none'}`)
  // #endregion list
}
await next()
await timers.advance(20 * HOUR) // 28 March, 9:00 in Berlin
await runtime.idle()
await next() // the clocks go forward: 23 hours
await timers.advance(23 * HOUR)
await runtime.idle()
for (const { message } of await runtime.threads.messages(id))
  if (message.type === 'assistant' && message.text.startsWith('Good')) console.log(message.text)

// #region cancel
const [effect] = await runtime.threads.effects.list(id)
await runtime.threads.effects.remove(id, effect!.id)
// #endregion cancel
await next()
await runtime.stop()
