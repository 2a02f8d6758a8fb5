import { expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted } from '@skein/ai/testing'
import { defineAgent, definePrompt, defineTool } from '@skein/runtime'
import { threadView } from '@skein/runtime/view'
import { violations, withBrowser, withStudio } from './studio-kit.ts'

withBrowser()

/** Payments that end when the test says so, and do not obey a stop. */
function bank() {
  const ends: ((result: string) => void)[] = []
  const execute = (): Promise<string> => new Promise((resolve) => ends.push(resolve))
  const args = z.object({ to: z.string(), amount: z.number() })
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    args,
    risk: 'write_low_risk',
    execute,
  })
  const wire = defineTool({
    name: 'wire',
    description: 'Wires money, for good.',
    args,
    risk: 'write_high_risk',
    rollback: 'impossible',
    timeoutMs: 100,
    execute,
  })
  const read = defineTool({
    name: 'read',
    description: 'Reads the stock.',
    args: z.object({}),
    risk: 'read_only',
    execute: () => '3 lamps',
  })
  const transfer = defineTool({
    name: 'transfer',
    description: 'Moves money between accounts, for good.',
    args,
    risk: 'write_high_risk',
    rollback: 'impossible',
    execute,
  })
  const mail = defineTool({
    name: 'mail',
    description: 'Sends a letter, which cannot be taken back.',
    args: z.object({ to: z.string() }),
    risk: 'write_low_risk',
    rollback: 'impossible',
    execute: () => 'sent',
  })
  const model = scripted(({ messages }) => {
    const last = messages.at(-1)
    if (last?.type !== 'user') return says('There are three lamps.')
    if (last.text.includes('pay')) return calls('pay', { to: 'ada', amount: 5 })
    if (last.text.includes('transfer')) return calls('transfer', { to: 'ada', amount: 70 })
    if (last.text.includes('mail')) return calls('mail', { to: 'ada' })
    if (last.text.includes('wire'))
      return [says('I will wire it.'), calls('wire', { to: 'ada', amount: 900 })]
    return last.text.includes('read') ? calls('read', {}) : says('There are a thousand lamps.')
  })
  const prompt = definePrompt({
    name: 'bank',
    prompt: 'Pay.',
    model,
    tools: [pay, wire, transfer, read, mail],
  })
  const agent = defineAgent({ name: 'bank', sideA: { prompt } })
  const needs = [{ type: 'tool_result', source: 'read' }] as const
  const taskClass = { name: 'report', needs, verifiers: [], repair: { max: 0 } }
  return { ends, agents: [agent, { ...agent, name: 'clerk', taskClass }] }
}

test('a thread that was asked to stop is stopping until its call has ended, and an unknown outcome says so until more is known', async () => {
  const { agents, ends } = bank()
  const limits = { stopGraceMs: 2500 }
  await withStudio({ runtime: { agents, limits } }, async ({ open, runtime }) => {
    const { id } = await runtime.threads.create({ agent: 'bank', message: 'pay ada' })
    await expect.poll(() => ends.length).toBe(1)
    const page = await open(`/threads/${id}`)
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('button', { name: /^Stop now/ }).click()
    // The call still runs, so nothing says that the thread has stopped.
    await page.locator('.head .pill').getByText('stopping', { exact: true }).waitFor()
    await page.locator('.list .row').getByText('stopping', { exact: true }).waitFor()
    await page.getByText(/^Stopping\. To continue later/).waitFor()
    await page.getByRole('button', { name: /^running: pay/ }).waitFor()
    expect(await page.getByText('Stopped').count()).toBe(0)

    const call = page.getByRole('button', { name: /^unknown \(it may have happened\): pay/ })
    await call.waitFor()
    await page.locator('.head .pill').getByText('stopped', { exact: true }).waitFor()
    // No gate checks the answers of this agent, so nothing was kept back.
    expect(await page.getByText(/^Not delivered/).count()).toBe(0)

    // The call ends after all.
    ends[0]!('paid 5')
    await page.getByRole('button', { name: /^unknown, but it ended later: success: pay/ }).click()
    const chat = page.getByRole('region', { name: 'Conversation' })
    await chat.getByText(/It ended later: success · .* · paid 5/).waitFor()
    const details = page.getByRole('complementary', { name: 'Details' })
    await details.getByText(/^unknown, but it ended later: success · /).waitFor()
    await details.getByRole('heading', { name: 'Result that came later' }).waitFor()
    expect(await violations(page)).toEqual([])
    await page.getByRole('link', { name: /^Timeline/ }).click()
    await page.getByRole('button', { name: /pay unknown, but it ended later: success/ }).waitFor()
  })
})

test('after a stop, a person is asked about a call with a high risk, and its real end is the answer', async () => {
  const { agents, ends } = bank()
  await withStudio(
    { runtime: { agents, limits: { stopGraceMs: 100 } } },
    async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'bank', message: 'transfer it' })
      await runtime.threads.settled(id)
      const [item] = await runtime.inbox.list()
      await runtime.inbox.approve({ ...item!, by: 'ada' })
      await expect.poll(() => ends.length).toBe(1)
      await runtime.threads.stop(id)
      await expect.poll(async () => (await runtime.inbox.list())[0]?.kind).toBe('in_doubt')
      const inbox = await open('/inbox')
      const card = inbox.locator('.ask')
      await card.getByText('"transfer" was asked to stop and did not.').waitFor()
      await card.getByText(/^The thread did not wait for this\. Nothing runs again/).waitFor()
      await card.getByRole('button', { name: 'It did not happen' }).waitFor()
      expect(await card.innerText()).not.toMatch(/process ended|"choices"/)
      expect(await violations(inbox)).toEqual([])
      const page = await open(`/threads/${id}`)
      await page.locator('.head .pill').getByText('stopped · 1 decision', { exact: true }).waitFor()
      await page.locator('.list .row').getByText('stopped · 1 decision', { exact: true }).waitFor()
      await page.getByRole('heading', { name: /^Did it happen\? transfer/ }).waitFor()

      ends[0]!('moved')
      await card.getByText(/^It no longer waits: the call has ended/).waitFor()
      await page.getByText(/It ended later: success · .* · moved/).waitFor()
      await page.locator('.head .pill').getByText('stopped', { exact: true }).waitFor()
    },
  )
})

test('a call in doubt is asked about in words that say what happened to it', async () => {
  const { agents } = bank()
  const limits = { stopGraceMs: 100 }
  await withStudio({ runtime: { agents, limits } }, async ({ open, runtime }) => {
    const { id } = await runtime.threads.create({ agent: 'bank', message: 'wire it' })
    await runtime.threads.settled(id)
    const [item] = await runtime.inbox.list()
    await runtime.inbox.approve({ ...item!, by: 'ada' })
    await expect.poll(async () => (await runtime.inbox.list())[0]?.kind).toBe('in_doubt')
    const page = await open('/inbox')
    const card = page.locator('.ask')
    await card.getByText('"wire" took longer than its time limit and did not stop.').waitFor()
    await card.getByText(/the call runs again, after a new approval/).waitFor()
    expect(await card.innerText()).not.toMatch(/process ended|"choices"/)
    await page.getByText('in doubt', { exact: true }).waitFor()
    // The API, the view of the thread, the list and the head of the thread have the same word.
    expect((await runtime.threads.get(id)).lifecycle).toBe('waiting')
    expect(threadView(await runtime.threads.events(id)).status).toBe('waiting')
    const thread = await open(`/threads/${id}`)
    for (const place of ['.head .pill', '.list .row'])
      await thread.locator(place).getByText('waiting', { exact: true }).waitFor()
  })
})

test('an answer is marked until a gate has delivered it, on the screen and for screen readers', async () => {
  const { agents } = bank()
  await withStudio({ runtime: { agents } }, async ({ open, runtime }) => {
    const started = async (message: string): Promise<string> => {
      const { id } = await runtime.threads.create({ agent: 'clerk', message })
      await runtime.threads.settled(id)
      return id
    }
    const pending = await open(`/threads/${await started('wire it')}`)
    const said = pending.getByRole('article').filter({ hasText: 'I will wire it.' })
    await said.getByText(/^not verified yet/).waitFor()
    await pending.getByRole('button', { name: /^waiting: wire/ }).click()
    await pending.getByRole('tab', { name: 'Evidence' }).click()
    await pending.getByText('A gate checks the answers; it has not decided yet.').waitFor()

    const id = await started('read it')
    const page = await open(`/threads/${id}`)
    await page.getByText('There are three lamps.').waitFor()
    expect(await page.getByText(/not verified|not delivered/).count()).toBe(0)
    await runtime.threads.run(id, 'how many?')
    const refused = page.getByRole('article').filter({ hasText: 'There are a thousand lamps.' })
    await refused.getByText('not delivered: unverified').waitFor()
    await page.getByText('The answer was not delivered.').waitFor()
    await expect
      .poll(() => page.getByTestId('spoken').innerText())
      .toMatch(/Not (?:delivered|verified yet): There are a thousand lamps|The thread has failed/)
    expect(await violations(page)).toEqual([])
  })
})

test('a write that was not undone when its session failed is asked about where it happened', async () => {
  const { agents } = bank()
  await withStudio({ runtime: { agents } }, async ({ open, runtime }) => {
    const { id } = await runtime.threads.create({ agent: 'clerk', message: 'mail ada' })
    await runtime.threads.settled(id)
    const page = await open(`/threads/${id}`)
    await page.getByText('not undone: it cannot be undone').waitFor()
    const card = page.locator('.ask')
    await card.getByRole('heading', { name: 'Not undone: mail: to ada' }).waitFor()
    await card.getByText(/It cannot be undone\. Does the write still have its effect\?/).waitFor()
    await card.getByText('Nothing runs again.', { exact: false }).waitFor()
    expect(await violations(page)).toEqual([])
    await card.getByRole('button', { name: 'It still has its effect' }).click()
    await page.getByText(/^It still has its effect: /).waitFor()
    await expect.poll(() => runtime.inbox.list()).toEqual([])
  })
})
