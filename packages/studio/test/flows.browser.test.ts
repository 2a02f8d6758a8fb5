import type { Locator, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted, waits, type ScriptPart } from '@skein/ai/testing'
import { defineAgent, definePrompt, defineTool, type AgentDefinition } from '@skein/runtime'
import { approveByKeys, withBrowser, withStudio } from './studio-kit.ts'

withBrowser()

const refunded: number[] = []

const undo = defineTool({
  name: 'undo',
  description: 'Takes a refund back.',
  args: z.object({ amount: z.number() }),
  risk: 'write_low_risk',
  execute: (_, { amount }) => `Took ${amount} back.`,
})

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  args: z.object({ amount: z.number(), note: z.string().optional() }),
  risk: 'write_high_risk',
  rollback: ({ amount }) => ({ type: 'tool_call', target: 'undo', payload: { amount } }),
  execute: (_, { amount }) => {
    refunded.push(amount)
    return `Paid ${amount}.`
  },
})

/** Three agents below each other; the lowest asks for a refund. */
function nested(depth: number): AgentDefinition {
  const isLowest = depth === 0
  const name = `level_${depth}`
  const below = isLowest ? refund : { name: nested(depth - 1), initUserMessageProperty: 'task' }
  return defineAgent({
    name,
    type: 'dual_ai',
    exposeAsTool: true,
    toolDescription: 'Works.',
    maxSessionTurns: 4,
    sideA: {
      prompt: definePrompt({
        name: `${name}_a`,
        prompt: 'Work.',
        model: scripted(({ messages }): ScriptPart | readonly ScriptPart[] => {
          const isDone = messages.some(({ type }) => type === 'tool_result')
          if (isDone) return calls('done', { text: `${name} is done` })
          return isLowest
            ? calls('refund', { amount: 12 })
            : calls(`level_${depth - 1}`, { task: 'pay' })
        }),
        tools: [below, done, undo],
        requiredSchema: z.object({ task: z.string() }),
      }),
      sessionStop: { name: done, messageProperty: 'text' },
    },
    sideB: {
      prompt: definePrompt({
        name: `${name}_b`,
        prompt: 'Review.',
        model: scripted(() => says('Continue.')),
      }),
    },
  })
}

const done = defineTool({
  name: 'done',
  description: 'Ends the work.',
  args: z.object({ text: z.string() }),
  risk: 'read_only',
  execute: (_, { text }) => text,
})

const WORDS = Array.from({ length: 40 }, (_, index) => `word${index} `)

const desk = defineAgent({
  name: 'desk',
  title: 'Desk',
  sideA: {
    label: 'Desk',
    prompt: definePrompt({
      name: 'desk',
      prompt: 'Help.',
      model: scripted(({ messages }): ScriptPart | readonly ScriptPart[] => {
        const last = messages.at(-1)
        if (last?.type !== 'user') return says('That is done.')
        const { text } = last
        if (text.includes('deep')) return calls('level_2', { task: text })
        if (text.includes('refund')) return calls('refund', { amount: 5, note: 'thank you' })
        if (text.includes('forever')) return [says('It begins. '), waits(Infinity)]
        if (text.includes('slowly')) return WORDS.flatMap((word) => [says(word), waits(60)])
        return says(`You said: ${text}`)
      }),
      tools: [refund, undo, { name: nested(2), initUserMessageProperty: 'task' }],
    }),
  },
})

const agents = { runtime: { agents: [desk] } }

function chat(page: Page): Locator {
  return page.getByRole('region', { name: 'Conversation' })
}

/** Everything that the conversation shows as text. */
async function conversation(page: Page): Promise<string> {
  return chat(page).innerText()
}

describe('a thread', () => {
  test('is started, answered and listed, live in a second window', async () => {
    await withStudio(agents, async ({ open }) => {
      const other = await open('/')
      await other.getByText('No threads yet').waitFor()
      const page = await open('/')
      await page.getByLabel('First message').fill('Hello **there**')
      await page.keyboard.press('Enter')
      await page.waitForURL(/\/threads\/./)
      await chat(page).getByText('You said: Hello').waitFor()
      expect(await page.locator('.prose strong').first().innerText()).toBe('there')
      await other.getByRole('link', { name: /Hello \*\*there\*\*/ }).waitFor()
    })
  })

  test('streams word by word, and Stop keeps what was said', async () => {
    await withStudio(agents, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'count slowly' })
      const page = await open(`/threads/${id}`)
      await chat(page).getByText('word3').waitFor()
      expect(await conversation(page)).not.toContain('word39')
      await page.getByRole('button', { name: 'Stop' }).click()
      await page.getByRole('button', { name: /Stop now/ }).click()
      await page.getByRole('button', { name: 'Resume' }).waitFor()
      expect(await conversation(page)).toContain('word3')
      expect((await runtime.threads.get(id)).lifecycle).toBe('stopped')
    })
  })

  test('continues while the tab is closed, and nothing is there twice', async () => {
    await withStudio(agents, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'count slowly' })
      const page = await open(`/threads/${id}`)
      await chat(page).getByText('word2').waitFor()
      await page.close()
      await runtime.threads.settled(id)
      const again = await open(`/threads/${id}`)
      await chat(again).getByText('word39').waitFor()
      expect((await conversation(again)).match(/word7 /g)).toHaveLength(1)
    })
  })

  test('takes a message while it works: read later, or taken back', async () => {
    await withStudio(agents, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'wait forever' })
      const page = await open(`/threads/${id}`)
      await chat(page).getByText('It begins.').waitFor()
      await page.getByRole('textbox', { name: 'Message' }).fill('never mind')
      await page.getByLabel('Interrupt: ').waitFor()
      await page.getByRole('textbox', { name: 'Message' }).press('Enter')
      await page.getByRole('button', { name: 'Withdraw' }).click()
      await page.getByText('Withdrawn.').waitFor()
      // The thread says so a moment after the answer to the click.
      await page.getByRole('button', { name: 'Withdraw' }).waitFor({ state: 'detached' })
      await page.getByRole('textbox', { name: 'Message' }).fill('something else')
      await page.getByLabel('Interrupt: ').check()
      await page.getByRole('textbox', { name: 'Message' }).press('Enter')
      await chat(page).getByText('You said: something else').waitFor()
      const said = JSON.stringify(await runtime.threads.messages(id))
      expect(said).toContain('something else')
      expect(said).not.toContain('never mind')
    })
  })

  test('sends files and pasted pictures, and shows them in place', async () => {
    await withStudio(agents, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'hello' })
      const page = await open(`/threads/${id}`)
      await chat(page).getByText('You said: hello').waitFor()
      await page.locator('input[type=file]').setInputFiles([
        { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('a note') },
        { name: 'dot.png', mimeType: 'image/png', buffer: PIXEL },
      ])
      await page.getByRole('textbox', { name: 'Message' }).fill('look at this')
      await page.getByRole('textbox', { name: 'Message' }).press('Enter')
      await chat(page).getByText('You said: look at this').waitFor()
      await page.getByRole('link', { name: /notes\.txt/ }).waitFor()
      const shown = page.getByRole('img', { name: /dot\.png/ })
      await expect.poll(() => shown.evaluate((one: HTMLImageElement) => one.naturalWidth)).toBe(1)
    })
  })
})

const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe('the inbox', () => {
  test('an action three children deep is approved here, and its thread shows who and when', async () => {
    refunded.length = 0
    const local = { tenant: 'default', user: 'ada', scopes: ['admin'] } as const
    await withStudio({ ...agents, serve: { local } }, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'go deep' })
      await runtime.threads.settled(id)
      const page = await open('/inbox')
      await page.getByText('Asked by desk › level_2 › level_1 › level_0').waitFor()
      expect(await page.title()).toMatch(/^\(1\) /)
      await approveByKeys(page)
      await page.getByText('Approved.').waitFor()
      await runtime.threads.settled(id)
      expect(refunded).toEqual([12])
      const lowest = (await runtime.threads.list()).find(({ agent }) => agent === 'level_0')!
      const thread = await open(`/threads/${lowest.id}`)
      await thread.getByText(/^Approved by ada/).waitFor()
      await thread.getByText('desk').first().waitFor()
    })
  })

  test('Enter on the page opens the thread and never approves; e and d move to what decides; nothing moves when something arrives', async () => {
    refunded.length = 0
    await withStudio(agents, async ({ open, runtime }) => {
      const start = async (): Promise<string> => {
        const { id } = await runtime.threads.create({ agent: 'desk', message: 'refund me' })
        await runtime.threads.settled(id)
        return id
      }
      const first = await start()
      const page = await open('/inbox')
      await page.getByRole('button', { name: 'Approve a' }).waitFor()
      await page.keyboard.press('Enter')
      await page.waitForURL(new RegExp(`/threads/${first}`))
      expect(refunded).toEqual([])
      await page.goBack()

      // Approve with changes: the call that runs has the arguments of the person.
      await page.keyboard.press('e')
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Edit as JSON' }).click()
      await page.getByLabel('Arguments, as JSON').fill('{ "amount": 3 }')
      await page.getByRole('button', { name: 'Approve these arguments' }).click()
      await page.getByText('Approved with changes.').waitFor()
      await runtime.threads.settled(first)
      expect(refunded).toEqual([3])

      const second = await start()
      await expect.poll(() => page.locator('.inbox-list li').count()).toBe(2)
      await page.keyboard.press('j')
      await page.keyboard.press('d')
      await page.keyboard.press('Enter')
      const reason = page.getByLabel(/^Reason/)
      await reason.fill('Too')
      await start() // arrives while the person types
      await page.getByText('2 decisions').waitFor()
      await page.keyboard.type(' much')
      expect(await reason.inputValue()).toBe('Too much')
      await page.getByRole('button', { name: 'Deny', exact: true }).click()
      await page.getByText('Denied.').waitFor()
      const denied = await runtime.threads.settled(second)
      expect(denied.outcome).toBe('completed')
      expect(refunded).toEqual([3])
    })
  })

  test('a second person sees who was first, and a second press does not meet the next decision', async () => {
    refunded.length = 0
    const local = { tenant: 'default', user: 'ada', scopes: ['admin'] } as const
    await withStudio({ ...agents, serve: { local } }, async ({ open, runtime }) => {
      for (let count = 0; count < 2; count++) {
        const { id } = await runtime.threads.create({ agent: 'desk', message: 'refund me' })
        await runtime.threads.settled(id)
      }
      const page = await open('/inbox')
      const other = await open('/inbox')
      const approve = other.getByRole('button', { name: 'Approve a' })
      await approve.waitFor()
      await page.getByRole('button', { name: 'Approve a' }).waitFor()
      await approveByKeys(page)
      for (let press = 0; press < 3; press++) await page.keyboard.press('Enter')
      await page.getByText('Approved.').waitFor()
      await expect.poll(() => refunded).toEqual([5])
      // The other window knows, and says so at the place of the buttons.
      await other.getByText('1 decision to make').waitFor()
      await other.getByText(/ada was first and approved it/).waitFor()
      expect(await approve.count()).toBe(0)
      expect(refunded).toEqual([5])
    })
  })
})

test('with the keyboard alone: send a message, hear one summary, approve, find the evidence', async () => {
  refunded.length = 0
  await withStudio(agents, async ({ open }) => {
    const page = await open('/')
    await page.getByLabel('First message').waitFor()
    await page.getByLabel('First message').press('Escape')
    await page.keyboard.press('n')
    await page.keyboard.press('Tab')
    for (let tabs = 0; tabs < 20; tabs++) {
      const name = await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))
      if (name === 'First message') break
      await page.keyboard.press('Tab')
    }
    await page.keyboard.type('refund me')
    await page.keyboard.press('Enter')
    await page
      .getByTestId('spoken')
      .filter({ hasText: 'decision to make' })
      .waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Approve a' }).waitFor()
    await approveByKeys(page)
    await chat(page).getByText('That is done.').waitFor()
    expect(refunded).toEqual([5])
    const call = page.getByRole('button', { name: /^success: refund/ })
    await call.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('tab', { name: 'Readable' }).focus()
    for (let step = 0; step < 4; step++) await page.keyboard.press('ArrowRight')
    await page.getByText('tool_result of refund').waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    expect(await page.getByRole('dialog').count()).toBe(0)
  })
})
