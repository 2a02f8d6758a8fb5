import { describe, expect, test } from 'vitest'
import { refundDesk, waitingThread } from './refund-desk.ts'
import { violations, withBrowser, withStudio } from './studio-kit.ts'

withBrowser()

test('a call that ran a child has no decision: nothing says that someone denied it, and every view has the same word', async () => {
  await withStudio({}, async ({ open, runtime }) => {
    const { id } = await runtime.threads.create({
      agent: 'support',
      message: 'Please write a label for the oak loom.',
    })
    await runtime.threads.settled(id)
    const page = await open(`/threads/${id}`)
    await page.getByRole('button', { name: /^success: asset_subagent/ }).click()
    const details = page.getByRole('complementary', { name: 'Details' })
    await details.getByText(/^success · /).waitFor()
    expect(await details.innerText()).not.toMatch(/Denied|Approved/)
    // One word for the state of the thread and of its child, in the list, the chat and the tree.
    await page.getByRole('button', { name: 'Close the details' }).click()
    const [child] = await runtime.threads.list({ parentId: id })
    const words = { parent: 'idle', child: 'terminated · completed' }
    expect([(await runtime.threads.get(id)).lifecycle, child!.lifecycle]).toEqual([
      'idle',
      'terminated',
    ])
    await page.locator('.child-line .pill').getByText(words.child, { exact: true }).waitFor()
    await page.locator('.list .row').getByText(words.parent, { exact: true }).waitFor()
    await page.getByRole('link', { name: /^Tree/ }).click()
    const states = page.locator('.tree-view tbody td:nth-child(2)')
    await expect
      .poll(() => states.allInnerTexts())
      .toEqual([words.parent, words.child].map((one) => ` ${one}`))
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill('oak')
    await page.getByRole('option', { name: /support · idle · / }).waitFor()
    await page.keyboard.press('Escape')
    // The scripted model has a price, so the demo shows a cost.
    expect(await page.locator('.head .numbers').innerText()).toMatch(/cost \$0\.\d+/)
    const own = await open(`/threads/${child!.id}`)
    await own.locator('.head .pill').getByText(words.child, { exact: true }).waitFor()
  })
})

test('the model time of a thread is the same in its head, in the tree and in a comparison', async () => {
  await withStudio({}, async ({ open, runtime }) => {
    const start = async (message: string): Promise<string> => {
      const { id } = await runtime.threads.create({ agent: 'support', message })
      await runtime.threads.settled(id)
      return id
    }
    const withChild = await start('Please write a label for the oak loom.')
    const other = await start('Where is order O-8?')
    const page = await open(`/threads/${withChild}?view=tree`)
    const own = await page.locator('.tree-view tbody tr').first().locator('td').last().innerText()
    const head = page.locator('.head .numbers').getByText(/^model time/)
    expect(await head.innerText()).toBe(`model time ${own}`)
    await page.goto(page.url().replace('view=tree', `with=${other}`))
    const row = page.locator('.diff-sums tr').filter({ hasText: 'Model time' }).locator('td')
    expect(await row.first().innerText()).toBe(own)
  })
})

test('the inbox shows what the person wrote, what the tool returned, and that the same call waits twice', async () => {
  await withStudio({}, async ({ open, runtime }) => {
    for (const message of ['Please refund order O-7.', 'The lamp O-7 is broken, money back!']) {
      const { id } = await runtime.threads.create({ agent: 'support', message, owner: 'grace' })
      await runtime.threads.settled(id)
    }
    const page = await open('/inbox')
    const card = page.locator('.ask')
    await card.getByText('Please refund order O-7.').waitFor()
    await card.getByText('{"order":"O-7","item":"a brass lamp","amount":25').waitFor()
    await card.getByText(/The same call with the same arguments waits 2 times/).waitFor()
    const rows = page.locator('.inbox-list .row')
    await expect.poll(() => rows.count()).toBe(2)
    const [first, second] = await rows.allInnerTexts()
    expect(first).toContain('“Please refund order O-7.”')
    expect(first).toContain('grace')
    expect(second).toContain('“The lamp O-7 is broken, money back!”')
    expect(await violations(page)).toEqual([])
  })
})

describe('threads', () => {
  test('are renamed and deleted, one and several together', async () => {
    const { agent } = refundDesk()
    await withStudio({ runtime: { agents: [agent] } }, async ({ open, runtime }) => {
      const ids: string[] = []
      for (const message of ['one', 'two', 'three', 'refund']) {
        ids.push(await waitingThread(runtime, message))
      }
      const page = await open(`/threads/${ids[0]}`)
      await page.getByRole('button', { name: 'More' }).click()
      await page.getByRole('button', { name: /^Rename/ }).click()
      await page.getByLabel('Title').fill('The first')
      await page.getByRole('button', { name: 'Rename', exact: true }).click()
      await page.getByRole('heading', { name: 'The first' }).waitFor()
      expect((await runtime.threads.get(ids[0]!)).title).toBe('The first')

      await page.getByRole('button', { name: 'More' }).click()
      await page.getByRole('button', { name: /^Delete/ }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByText('Deleted 1 thread.').waitFor()
      await expect.poll(() => page.locator('.list .row').count()).toBe(3)

      await page.getByRole('button', { name: 'Select threads' }).click()
      // The buttons take one line; the rest is the list.
      expect((await page.locator('.list-marked').boundingBox())!.height).toBeLessThan(60)
      await page.getByLabel('Select two').check()
      await page.getByLabel('Select refund').check()
      expect(await violations(page)).toEqual([])
      await page.getByRole('button', { name: 'Delete 2…' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByText('Deleted 2 threads.').waitFor()
      expect((await runtime.threads.list()).map(({ id }) => id)).toEqual([ids[2]])
      await expect.poll(() => page.locator('.list .row').count()).toBe(1)
      expect(await runtime.inbox.list()).toEqual([])
    })
  })
})

test('an empty list shows a command for an agent that is there', async () => {
  const { agent } = refundDesk()
  await withStudio({ runtime: { agents: [agent] } }, async ({ open }) => {
    const page = await open('/')
    await page.getByText('npx skein run desk "Hello"').waitFor()
    expect(await violations(page)).toEqual([])
  })
})

test('a first message of the demo is one click away', async () => {
  await withStudio({}, async ({ open, runtime }) => {
    const page = await open('/')
    await page.getByRole('button', { name: 'A refund, to be approved' }).click()
    await page.getByRole('button', { name: 'Approve a' }).waitFor()
    expect((await runtime.threads.list())[0]?.firstWords).toBe('Please refund order O-7.')
  })
})

test('at 390 px every page is in the navigation, and no screen hides a part at its side', async () => {
  await withStudio({}, async ({ open, runtime }) => {
    const { id } = await runtime.threads.create({
      agent: 'support',
      message: 'Please write a label for the oak loom.',
    })
    await runtime.threads.settled(id)
    const [child] = await runtime.threads.list({ parentId: id })
    const call = `/threads/${child!.id}?select=event+3`
    for (const path of ['/inbox', `/threads/${id}`, `/threads/${id}?view=tree`, call, '/agents']) {
      const page = await open(path, { width: 390, height: 780 })
      for (const name of ['Threads', /^Inbox/, 'Agents', 'API', 'Docs']) {
        const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name })
        const box = (await link.boundingBox())!
        expect(box.x >= 0 && box.x + box.width <= 390, `${path}: ${name}`).toBe(true)
      }
      await page.locator('main h1, .detail .tab').first().waitFor()
      const wide = await page.evaluate(() =>
        [...document.querySelectorAll('.tree-view, .tabs, .inbox')]
          .filter((box) => box.scrollWidth > box.clientWidth + 1)
          .map((box) => box.className),
      )
      expect(wide, path).toEqual([])
      // Neither a name in the tree nor the tabs of the details take a second line.
      const broken = await page.evaluate(() => {
        const names = [...document.querySelectorAll('.tree-view th a')]
        const tabs = [...document.querySelectorAll('.detail .tab')]
        const tops = new Set(tabs.map((tab) => tab.getBoundingClientRect().top))
        return (
          names.filter((name) => name.getClientRects().length > 1).length + (tops.size > 1 ? 1 : 0)
        )
      })
      expect(broken, path).toBe(0)
      await page.context().close()
    }
  })
})
