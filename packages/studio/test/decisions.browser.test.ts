import { setTimeout as delay } from 'node:timers/promises'
import type { Locator, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { refundDesk, waitingThread, type RefundDesk } from './refund-desk.ts'
import { violations, withBrowser, withStudio, type StudioKit } from './studio-kit.ts'

withBrowser()

interface Scene extends StudioKit {
  readonly desk: RefundDesk
  readonly page: Page
  readonly threadId: string
}

/** Opens the inbox or the thread while one refund waits that cannot be undone. */
async function withWaiting(
  { screen, message = 'refund for good' }: { screen: 'inbox' | 'thread'; message?: string },
  work: (scene: Scene) => Promise<void>,
): Promise<void> {
  const desk = refundDesk()
  await withStudio({ runtime: { agents: [desk.agent] } }, async (kit) => {
    const threadId = await waitingThread(kit.runtime, message)
    const page = await kit.open(screen === 'inbox' ? '/inbox' : `/threads/${threadId}`)
    await page
      .getByRole('button', { name: /^Approve(?! )|^Approve a$/ })
      .first()
      .waitFor()
    await work({ ...kit, desk, page, threadId })
  })
}

/** What has been decided and paid, a moment after the keys. */
async function expectUndecided({ page, runtime, desk }: Scene): Promise<void> {
  await delay(300)
  expect(await page.getByText(/^Approved/).count()).toBe(0)
  expect(desk.paid).toEqual([])
  expect((await runtime.inbox.list()).length).toBe(1)
}

/** Makes the machine of the page slower by a factor, while the work runs. */
async function slowed(page: Page, rate: number, work: () => Promise<void>): Promise<void> {
  const machine = await page.context().newCDPSession(page)
  await machine.send('Emulation.setCPUThrottlingRate', { rate })
  await work()
  await machine.send('Emulation.setCPUThrottlingRate', { rate: 1 })
  await machine.detach()
}

describe('typing never decides about a call', () => {
  for (const rate of [1, 4])
    for (const gapMs of rate === 1 ? [10, 40, 80, 150] : [80, 150, 300])
      test(`in the inbox, Ctrl K and, ${gapMs} ms later, "agents"; CPU/${rate}`, async () => {
        await withWaiting({ screen: 'inbox' }, async (scene) => {
          const { page } = scene
          await slowed(page, rate, async () => {
            await page.keyboard.press('Control+k')
            await delay(gapMs)
            await page.keyboard.type('agents', { delay: 30 })
          })
          await expectUndecided(scene)
          // No letter is lost either.
          expect(await page.getByRole('combobox').inputValue()).toBe('agents')
        })
      })

  test('in a thread, Ctrl K and "api" on a slow machine', async () => {
    await withWaiting({ screen: 'thread' }, async (scene) => {
      const { page } = scene
      await slowed(page, 4, async () => {
        await page.keyboard.press('Control+k')
        await delay(100)
        await page.keyboard.type('api', { delay: 90 })
      })
      await expectUndecided(scene)
      expect(await page.getByRole('combobox').inputValue()).toBe('api')
    })
  })

  for (const screen of ['inbox', 'thread'] as const)
    for (const rate of [1, 4])
      for (const gapMs of rate === 1 ? [300, 1300, 2500] : [1300])
        test(`g and, ${gapMs} ms later, a, then Enter: ${screen}; CPU/${rate}`, async () => {
          await withWaiting({ screen }, async (scene) => {
            const { page } = scene
            await slowed(page, rate, async () => {
              await page.keyboard.press('g')
              await delay(gapMs)
              await page.keyboard.press('a')
            })
            await expectUndecided(scene)
            // The second key of a pair does not move the focus to a decision either.
            expect(await page.locator('[data-decision]:focus').count()).toBe(0)
            await delay(800)
            await page.keyboard.press('Enter')
            await expectUndecided(scene)
          })
        })
})

/** The middle of a button, in pixels of the window. */
async function middleOf(button: Locator): Promise<{ readonly x: number; readonly y: number }> {
  const { x, y, width, height } = (await button.boundingBox())!
  return { x: x + width / 2, y: y + height / 2 }
}

const CONFIRMATION = 'Refund for good: order O-7, amount 25. This cannot be undone.'

describe('a decision is made on purpose', () => {
  test('by keys: a moves to the button, Enter counts after a moment, and a call for good is confirmed', async () => {
    await withWaiting({ screen: 'inbox' }, async (scene) => {
      const { page, desk } = scene
      const approve = page.locator('[data-choice=approve]')
      await page.keyboard.press('a')
      expect(await approve.evaluate((one) => one === document.activeElement)).toBe(true)
      const placesOfButtons = (): Promise<unknown> =>
        page.locator('.ask > .btns .btn').evaluateAll((all) =>
          all.map((one) => {
            const { left, top } = one.getBoundingClientRect()
            return [left, top]
          }),
        )
      const before = await placesOfButtons()
      await page.keyboard.press('Enter')
      await page.getByText(/^Too quick: nothing was decided/).waitFor()
      // The message moves no button away from under a pointer.
      expect(await placesOfButtons()).toEqual(before)
      // Any other key takes the focus away, so the Enter after it is no decision.
      await delay(800)
      await page.keyboard.press('x')
      expect(await approve.evaluate((one) => one === document.activeElement)).toBe(false)
      await page.keyboard.press('a')
      await delay(900)
      await page.keyboard.press('Enter')
      await page.getByRole('group', { name: CONFIRMATION }).waitFor()
      await expectUndecided(scene)
      // The confirmation has the focus, but not its button.
      await delay(800)
      await page.keyboard.press('Shift')
      await page.keyboard.press('Tab')
      await page.keyboard.press('Tab')
      await delay(900)
      await page.keyboard.press('Enter')
      await page.getByText('Approved.').waitFor()
      await expect.poll(() => desk.paid).toEqual([25])
    })
  })

  for (const width of [1440, 390])
    test(`by pointer: the confirmation is never under it, at ${width} px`, async () => {
      await withWaiting({ screen: 'thread' }, async (scene) => {
        const { page, desk } = scene
        await page.setViewportSize({ width, height: 800 })
        const approve = page.locator('[data-choice=approve]:not([aria-disabled])')
        await approve.waitFor()
        const { x, y } = await middleOf(approve)
        await page.mouse.dblclick(x, y)
        const confirm = page.locator('[data-choice=confirm]')
        await confirm.waitFor()
        await delay(900)
        const { x: left, y: top, width: wide, height } = (await confirm.boundingBox())!
        expect(await violations(page)).toEqual([])
        const isUnder = x >= left && x <= left + wide && y >= top && y <= top + height
        expect(isUnder).toBe(false)
        await page.mouse.click(x, y)
        await expectUndecided(scene)
        await confirm.click()
        await expect.poll(() => desk.paid).toEqual([25])
      })
    })

  test('not by a click that comes as soon as the call is on the screen, or after it has moved', async () => {
    await withWaiting({ screen: 'inbox', message: 'refund' }, async (scene) => {
      const { page } = scene
      const approve = page.locator('[data-choice=approve]:not([aria-disabled])')
      await approve.waitFor()
      await page.evaluate(() => {
        const inbox = document.querySelector<HTMLElement>('.inbox')!
        inbox.style.paddingTop = '8px'
      })
      const { x, y } = await middleOf(page.locator('[data-choice=approve]'))
      await page.mouse.click(x, y)
      await expectUndecided(scene)
      // Nor while it moves so slowly that no frame shows a whole pixel.
      await page.evaluate(() => {
        const move = [{ paddingTop: '8px' }, { paddingTop: '14px' }]
        document.querySelector('.inbox')!.animate(move, { duration: 3000, fill: 'forwards' })
      })
      await delay(1600)
      const moving = await middleOf(page.locator('[data-choice=approve]'))
      await page.mouse.click(moving.x, moving.y)
      await expectUndecided(scene)
      await page.reload()
      const fresh = page.locator('[data-choice=approve]')
      await fresh.waitFor()
      const place = await middleOf(fresh)
      await page.mouse.click(place.x, place.y)
      await expectUndecided(scene)
    })
  })

  test('not by a press or a tap that began or ended on another element', async () => {
    await withWaiting({ screen: 'inbox', message: 'refund' }, async (scene) => {
      const { page, desk } = scene
      const approve = page.locator('[data-choice=approve]:not([aria-disabled])')
      await approve.waitFor()
      const on = await middleOf(approve)
      const off = await middleOf(page.locator('.ask-title'))
      for (const [from, to] of [
        [off, on],
        [on, off],
      ] as const) {
        await page.mouse.move(from.x, from.y)
        await page.mouse.down()
        await page.mouse.move(to.x, to.y, { steps: 3 })
        await page.mouse.up()
      }
      const touch = await page.context().newCDPSession(page)
      const send = (type: 'touchStart' | 'touchMove' | 'touchEnd', touchPoints: (typeof on)[]) =>
        touch.send('Input.dispatchTouchEvent', { type, touchPoints })
      await send('touchStart', [off])
      await send('touchMove', [on])
      await send('touchEnd', [])
      await expectUndecided(scene)
      // A whole tap on the button counts.
      await send('touchStart', [on])
      await send('touchEnd', [])
      await expect.poll(() => desk.paid).toEqual([5])
    })
  })
})

test('what is typed while the page loads is never a key of the page', async () => {
  await withWaiting({ screen: 'inbox' }, async (scene) => {
    const { page, url, runtime } = scene
    await slowed(page, 4, async () => {
      await page.goto(`${url}/studio/`, { waitUntil: 'commit' })
      await page.keyboard.type('jack and gina attend a meeting', { delay: 40 })
    })
    const field = page.getByLabel('First message')
    await field.waitFor()
    expect(new URL(page.url()).pathname).toBe('/studio/')
    // The rest of it is in the field: nothing but its beginning can be missing.
    expect('jack and gina attend a meeting').toContain(await field.inputValue())
    expect((await field.inputValue()).length).toBeGreaterThan(5)
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect((await runtime.inbox.list()).length).toBe(1)
  })
})
