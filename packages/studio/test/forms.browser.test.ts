import type { Locator, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { calls, says, scripted, waits, type ScriptPart } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  defineModel,
  definePrompt,
  defineTool,
  memoryStore,
  type Store,
} from '@skein/runtime'
import { withBrowser, withStudio } from './studio-kit.ts'

withBrowser()

const paid: string[] = []

const undo = defineTool({
  name: 'undo',
  description: 'Takes a payment back.',
  risk: 'write_low_risk',
  args: z.looseObject({}),
  execute: () => 'undone',
})

const pay = defineTool({
  name: 'pay',
  description: 'Pays a customer.',
  risk: 'write_high_risk',
  args: z.object({ to: z.string() }),
  rollback: (payload) => ({ type: 'tool_call', target: 'undo', payload }),
  async execute(_, { to }) {
    paid.push(to)
    // The first process dies here, so that no one knows whether it was paid.
    if (paid.length === 1) await new Promise(() => {})
    return `paid ${to}`
  },
})

const ask = defineTool({
  name: 'ask',
  description: 'Asks the person at the other end.',
  args: z.object({ question: z.string() }),
  risk: 'read_only',
})

const weigh = defineTool({
  name: 'weigh',
  description: 'Weighs things.',
  risk: 'read_only',
  args: z.object({
    what: z.string().describe('The thing to weigh.'),
    times: z.number().int().min(1).default(1),
    unit: z.enum(['g', 'kg']),
    isWet: z.boolean().optional(),
    tags: z.array(z.string()).optional(),
  }),
  execute: (_, args) => ({ ...args, weight: 12 }),
})

const done = defineTool({
  name: 'done',
  description: 'Ends the work.',
  args: z.object({ text: z.string() }),
  risk: 'read_only',
  execute: (_, { text }) => text,
})

const vault = defineAgent({
  name: 'vault',
  type: 'dual_ai',
  exposeAsTool: true,
  toolDescription: 'Opens the vault.',
  maxSessionTurns: 4,
  sideA: {
    prompt: definePrompt({
      name: 'vault_a',
      prompt: 'Open it.',
      model: scripted(() => calls('done', { text: 'The vault is open.' })),
      tools: [done],
      requiredSchema: z.object({ task: z.string() }),
      variables: [{ name: 'VAULT_CODE', type: 'secret', required: true, scoped: true }],
    }),
    sessionStop: { name: done, messageProperty: 'text' },
  },
  sideB: {
    prompt: definePrompt({
      name: 'vault_b',
      prompt: 'Review.',
      model: scripted(() => says('Continue.')),
    }),
  },
})

const desk = defineAgent({
  name: 'desk',
  sideA: {
    label: 'Desk',
    prompt: definePrompt({
      name: 'desk',
      prompt: 'Help.',
      model: scripted(({ messages }): ScriptPart | readonly ScriptPart[] => {
        const last = messages.at(-1)
        if (last?.type !== 'user') return says('That is done.')
        const { text } = last
        if (text.includes('pay')) return calls('pay', { to: 'bob' })
        if (text.includes('ask')) return calls('ask', { question: 'Which colour?' })
        if (text.includes('vault')) return calls('vault', { task: 'open' })
        if (text.includes('slow'))
          return [calls('weigh', { what: 'a very large stone', unit: 'kg' }), waits(4000)]
        return says(`You said: ${text}`)
      }),
      tools: [pay, undo, ask, weigh, { name: vault, initUserMessageProperty: 'task' }],
    }),
  },
})

const agents = { runtime: { agents: [desk] } }

function chat(page: Page): Locator {
  return page.getByRole('region', { name: 'Conversation' })
}

/** A store that a second runtime can open after the first was stopped. */
function keptOpen(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}

describe('the inbox', () => {
  test('a call that a crash cut off is asked about, and runs again only if it did not happen', async () => {
    paid.length = 0
    const store = keptOpen(memoryStore())
    const first = await createRuntime({ agents: [desk], store })
    await first.start()
    const { id } = await first.threads.create({ agent: 'desk' })
    await first.threads.run(id, 'pay bob')
    const [item] = await first.inbox.list()
    await first.inbox.approve({ ...item!, by: 'ada' })
    await expect.poll(() => paid).toEqual(['bob'])
    await first.stop({ graceMs: 0 })
    await withStudio({ runtime: { agents: [desk], store } }, async ({ open, runtime }) => {
      await runtime.idle()
      const page = await open('/inbox')
      await page.getByRole('heading', { name: /^Did it happen\? pay: to bob/ }).waitFor()
      // The keys of approvals do nothing here: the question is another.
      await page.keyboard.press('a')
      await page.getByRole('button', { name: 'It did not happen', exact: true }).click()
      await page.locator('.ask.decided').getByText('It did not happen.').waitFor()
      // A person has to approve the new try, as any call with a high risk.
      await page.getByText('Nothing waits for a person.').or(page.getByText('1 decision')).waitFor()
      await runtime.threads.settled(id)
      for (const one of await runtime.inbox.list())
        await runtime.inbox.approve({ ...one, by: 'ada' })
      await expect.poll(() => paid).toEqual(['bob', 'bob'])
    })
  })

  test('a question of a tool is answered with words or JSON', async () => {
    await withStudio(agents, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'ask me' })
      await runtime.threads.settled(id)
      const page = await open('/inbox')
      await page.getByRole('heading', { name: /^An answer is needed for ask/ }).waitFor()
      const answer = page.getByRole('button', { name: 'Answer', exact: true })
      expect(await answer.isDisabled()).toBe(true)
      await page.getByRole('textbox', { name: 'Answer' }).fill('{ "colour": "green" }')
      await answer.click()
      await page.locator('.ask.decided').getByText('Answered.').waitFor()
      await runtime.threads.settled(id)
      const said = JSON.stringify(await runtime.threads.messages(id))
      expect(said).toContain('"colour":"green"')
    })
  })

  test('approving with changes is a form, or JSON for people who prefer that', async () => {
    paid.splice(0, paid.length, 'earlier')
    await withStudio(agents, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'pay bob' })
      await runtime.threads.settled(id)
      const page = await open('/inbox')
      await page.getByRole('button', { name: 'Approve a' }).waitFor()
      await page.keyboard.press('e')
      await page.keyboard.press('Enter')
      const to = page.getByLabel('to', { exact: true })
      await to.fill('carol')
      // Enter approves nothing.
      await to.press('Enter')
      await page.getByRole('button', { name: 'Edit as JSON' }).click()
      expect(JSON.parse(await page.getByLabel('Arguments, as JSON').inputValue())).toEqual({
        to: 'carol',
      })
      await page.getByLabel('Arguments, as JSON').fill('{ "to": ')
      await page.getByText(/^This is not JSON/).waitFor()
      const approve = page.getByRole('button', { name: 'Approve these arguments' })
      expect(await approve.isDisabled()).toBe(true)
      await page.getByLabel('Arguments, as JSON').fill('{ "to": "dave" }')
      await page.getByRole('button', { name: 'Edit as a form' }).click()
      expect(await to.inputValue()).toBe('dave')
      expect(paid).toEqual(['earlier'])
      await approve.click()
      await page.getByText('Approved with changes.').waitFor()
      await expect.poll(() => paid.at(-1)).toBe('dave')
    })
  })
})

test('a dialog stays open, with its text, when a press that began inside it ends outside', async () => {
  await withStudio({}, async ({ open, runtime }) => {
    const { id } = await runtime.threads.create({ agent: 'refunds', message: 'Refund O-7.' })
    await runtime.threads.settled(id)
    const page = await open('/inbox')
    await page.getByRole('button', { name: /^Deny…/ }).click()
    const reason = page.getByRole('dialog').getByRole('textbox')
    await reason.fill('Paid twice already.')
    // As a person selects text with the mouse.
    const { x, y } = (await reason.boundingBox())!
    await page.mouse.move(x + 60, y + 12)
    await page.mouse.down()
    await page.mouse.move(x - 200, y + 12, { steps: 4 })
    await page.mouse.up()
    expect(await reason.inputValue({ timeout: 1000 })).toBe('Paid twice already.')
    await page.mouse.click(x - 200, y)
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
  })
})

describe('a thread', () => {
  test('values that a child needs are given once and never shown', async () => {
    await withStudio(agents, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'open the vault' })
      await runtime.threads.settled(id)
      // High enough for all events.
      const page = await open(`/threads/${id}`, { height: 2400 })
      await page.getByRole('heading', { name: 'vault needs 1 value before it can start' }).waitFor()
      const code = page.getByLabel('VAULT_CODE')
      expect(await code.getAttribute('type')).toBe('password')
      await code.fill('open-sesame-42')
      await page.getByRole('button', { name: 'Save this value' }).click()
      await page.getByText('Saved. The child starts.').waitFor()
      await page.getByRole('button', { name: 'Open vault here' }).waitFor()
      await page.getByRole('link', { name: 'Events' }).click()
      await page.getByText('variables_provided').waitFor()
      expect(await page.content()).not.toContain('open-sesame')
    })
  })

  test('are in the inbox, too; the second person learns who was first, and standing grants can be revoked there', async () => {
    await withStudio(agents, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'open the vault' })
      await runtime.threads.settled(id)
      const [asked] = await runtime.inbox.list()
      const [page, other] = [await open('/inbox'), await open('/inbox')]
      const heading = { name: 'vault needs 1 value before it can start' }
      for (const one of [page, other]) await one.getByRole('heading', heading).waitFor()
      expect(await page.title()).toContain('(1)')
      // `a` and `d` decide nothing here; `e` goes to the field.
      await page.keyboard.press('a')
      await page.keyboard.press('d')
      await page.keyboard.press('e')
      await page.keyboard.type('open-sesame-42')
      expect(await page.getByLabel('VAULT_CODE').inputValue()).toBe('open-sesame-42')
      await other.getByLabel('VAULT_CODE').fill('another-sesame')
      const give = { name: 'Save this value' }
      // The first window is faster while the request of the second is on its way.
      await other.route(/\/variables\//, async (route) => {
        await page.getByRole('button', give).click()
        await page.getByText('Saved. The child starts.').first().waitFor()
        await route.continue()
      })
      await other.getByRole('button', give).click()
      await other.getByText(/was first\. Your values were not stored\./).waitFor()
      for (const one of [page, other]) expect(await one.content()).not.toContain('sesame')
      const waiting = async () => (await runtime.inbox.list()).map(({ interruptId }) => interruptId)
      await expect.poll(waiting).not.toContain(asked!.interruptId)

      const grant = { tool: 'pay', forMs: 3_600_000, by: 'ada' }
      await runtime.threads.grants.make(id, grant)
      await page.getByRole('button', { name: '1 tool temporarily approved' }).click()
      const dialog = page.getByRole('dialog', { name: 'Temporarily approved' })
      await dialog.getByText('by ada').waitFor()
      expect(
        await dialog.getByRole('link', { name: 'open the vault' }).getAttribute('href'),
      ).toMatch(new RegExp(`/threads/${id}$`))
      await dialog.getByRole('button', { name: 'Revoke' }).click()
      await dialog
        .getByText('No temporary approval is left: every call is asked about again.')
        .waitFor()
      expect(await runtime.threads.grants.list(id)).toMatchObject([{ status: 'revoked' }])
    })
  })

  test('shows the arguments of a call while the model writes them', async () => {
    await withStudio(agents, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'slow, please' })
      const page = await open(`/threads/${id}`)
      const draft = page.locator('.draft-call')
      await draft.getByText('weigh').waitFor()
      await draft.getByText('a very large stone').waitFor()
      expect(await page.locator('.call').count()).toBe(0)
      await runtime.threads.stop(id)
    })
  })

  test('a pasted picture is sent with the message and shown in place', async () => {
    await withStudio(agents, async ({ open, runtime }) => {
      const { id } = await runtime.threads.create({ agent: 'desk', message: 'hello' })
      const page = await open(`/threads/${id}`)
      await chat(page).getByText('You said: hello').waitFor()
      await page.getByRole('textbox', { name: 'Message' }).evaluate((field, data) => {
        const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0))
        const clipboardData = new DataTransfer()
        clipboardData.items.add(new File([bytes], 'image.png', { type: 'image/png' }))
        field.dispatchEvent(
          new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }),
        )
      }, PIXEL)
      await page.getByRole('list', { name: 'Files to send' }).getByText('image.png').waitFor()
      // A second one is taken back before it is sent.
      await page.locator('input[type=file]').setInputFiles({
        name: 'other.txt',
        mimeType: 'text/plain',
        buffer: Buffer.from('x'),
      })
      await page.getByRole('button', { name: 'Remove other.txt' }).click()
      await page.getByRole('textbox', { name: 'Message' }).fill('look')
      await page.getByRole('textbox', { name: 'Message' }).press('Enter')
      await chat(page).getByText('You said: look').waitFor()
      const shown = page.getByRole('img', { name: /image\.png/ })
      await expect.poll(() => shown.evaluate((one: HTMLImageElement) => one.naturalWidth)).toBe(1)
      expect(await chat(page).getByText('other.txt').count()).toBe(0)
    })
  })
})

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

describe('an agent', () => {
  test('a tool is tried alone, from a form that its schema makes', async () => {
    await withStudio(agents, async ({ open }) => {
      const page = await open('/agents/desk')
      await page.locator('summary').filter({ hasText: 'weigh' }).click()
      const form = page.locator('.try-tool').filter({ visible: true })
      await form.getByText('The thing to weigh.').waitFor()
      await form.getByLabel('what').fill('a stone')
      await form.getByLabel('times').fill('3')
      await form.getByLabel('unit').selectOption({ label: 'kg' })
      await form.getByLabel(/isWet/).selectOption({ label: 'true' })
      await form.getByLabel(/tags/).fill('["grey"]')
      await form.getByRole('button', { name: 'Run this tool once' }).click()
      await form
        .getByRole('status')
        .getByText(/^success/)
        .waitFor()
      const result = await form.locator('pre').innerText()
      expect(JSON.parse(result)).toEqual({
        what: 'a stone',
        times: 3,
        unit: 'kg',
        isWet: true,
        tags: ['grey'],
        weight: 12,
      })
      // A call with a high risk waits for a person here, too.
      await page.locator('summary').filter({ hasText: 'Pays a customer' }).click()
      const risky = page.locator('.try-tool').filter({ visible: true }).first()
      await risky.getByLabel('to').fill('eve')
      await risky.getByRole('button', { name: 'Run this tool once' }).click()
      await risky.getByText('waiting for a person').waitFor()
      expect(paid).not.toContain('eve')
    })
  })

  test('is tried with another model and settings, and the request can be seen', async () => {
    const quick = defineAgent({
      name: 'quick',
      sideA: {
        prompt: definePrompt({
          name: 'quick',
          prompt: 'Be quick.',
          model: defineModel({
            name: 'quick_model',
            model: scripted(() => says('From the quick model.'), { modelId: 'quick-1' }),
          }),
        }),
      },
    })
    await withStudio({ runtime: { agents: [desk, quick] } }, async ({ open }) => {
      const page = await open('/agents/desk')
      await page.getByText('Model and settings of this run').click()
      await page.getByRole('combobox', { name: 'Model' }).selectOption({ label: 'quick_model' })
      await page.getByLabel('Settings, as JSON').fill('{ "temperature": 0.3 }')
      await page.getByLabel('First message').fill('hello there')
      await page.getByLabel('First message').press('Enter')
      await chat(page).getByText('From the quick model.').waitFor()
      const answer = page.getByRole('article', { name: /^Desk/ })
      await answer.hover()
      await answer.getByRole('button', { name: 'Details' }).click()
      await page.getByRole('tab', { name: 'Request' }).click()
      const panel = page.getByRole('tabpanel')
      await panel.getByText('quick-1').first().waitFor()
      await panel.getByText('hello there').first().waitFor()
      await panel.getByText('temperature').first().waitFor()
      expect(await panel.innerText()).toContain('0.3')
    })
  })
})

test('the list continues beyond its first part, and a search says how far it has looked', async () => {
  await withStudio(agents, async ({ open, runtime }) => {
    await runtime.threads.create({ agent: 'desk', title: 'The oldest of all' })
    for (let count = 0; count < 1250; count++)
      await runtime.threads.create({ agent: 'desk', title: `Thread ${count}` })
    const page = await open('/threads')
    await page.getByText('Thread 1249').waitFor()
    await page.getByRole('searchbox').fill('oldest')
    await page.getByText('Searched the latest 200 threads.').waitFor()
    await page.getByRole('button', { name: 'Search older ones' }).click()
    await page.getByText('Searched the latest 1200 threads.').waitFor()
    await page.getByRole('button', { name: 'Search older ones' }).click()
    await page.getByRole('link', { name: /The oldest of all/ }).waitFor()
    expect(await page.getByText('Searched the latest').count()).toBe(0)

    const other = await open('/threads')
    await other.getByText('Thread 1249').waitFor()
    const list = other.locator('.list-scroll')
    await expect
      .poll(
        async () => {
          await list.evaluate((box) => box.scrollTo(0, box.scrollHeight))
          return other.getByText('The oldest of all').count()
        },
        { timeout: 8000 },
      )
      .toBe(1)
  })
}, 60_000)

test('tool: finds threads that have called a tool, themselves or through a child, as soon as they do', async () => {
  await withStudio(agents, async ({ open, runtime }) => {
    const ids = await Promise.all(
      ['open the vault', 'nothing'].map(async (message) => {
        const { id } = await runtime.threads.create({
          agent: 'desk',
          title: `About ${message}`,
          message,
        })
        await runtime.threads.settled(id)
        return id
      }),
    )
    const [{ interruptId } = { interruptId: '' }] = await runtime.inbox.list()
    await runtime.threads.variables.provide(ids[0]!, interruptId, { VAULT_CODE: 'open-sesame-42' })
    await runtime.idle()
    const page = await open('/threads')
    const search = page.getByRole('searchbox', { name: 'Search threads' })
    await page.getByText('About nothing').waitFor()
    // `done` was called by the vault, a child of the desk.
    for (const tool of ['vault', 'done']) {
      await search.fill(`tool:${tool}`)
      await page.getByText('About nothing').waitFor({ state: 'detached' })
      await page.getByText('About open the vault').waitFor()
      await page.getByText(/^Threads that have called this tool/).waitFor()
    }
    // The desk has this tool, but no one has called it yet.
    await search.fill('tool:ask')
    await page.getByText('No thread matches').waitFor()
    expect(await page.locator('.list .row').count()).toBe(0)
    await runtime.threads.send(ids[1]!, 'ask me')
    await page.getByText('About nothing').waitFor()
  })
})
