import { setTimeout as delay } from 'node:timers/promises'
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { createRuntime, discover, type EmbeddedRuntime, type RuntimeOptions } from '@skein/runtime'
import { serve, type ServeOptions, type Serving } from '@skein/server'
import { launchBrowser } from '../../../scripts/browser.ts'
import { root } from '../../../scripts/workspace.ts'
import { studioFiles } from '../src/index.ts'

/** A server with Studio, and pages of a real browser. */
export interface StudioKit {
  readonly runtime: EmbeddedRuntime
  readonly url: string
  /** Opens an address of Studio, e.g. `/inbox`, in a page of its own. */
  open(path?: string, options?: OpenOptions): Promise<Page>
  /** What the pages did that they must not do: requests to other hosts, errors, refused scripts. */
  readonly offences: readonly string[]
}

interface OpenOptions {
  readonly theme?: 'light' | 'dark'
  readonly width?: number
  readonly height?: number
  readonly reducedMotion?: 'reduce' | 'no-preference'
  /** The prefix of the server. */
  readonly prefix?: string
}

let browser: Browser | undefined

/** Starts the browser once per file. The first start unpacks it. */
export function withBrowser(): void {
  beforeAll(async () => {
    browser = await launchBrowser()
    // Builds the page if its sources have changed.
    const files = studioFiles()
    const isBuilt = (): boolean =>
      Buffer.from(files.get('index.html')!.body).toString().includes('id="studio"')
    while (!isBuilt()) await delay(200)
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    browser = undefined
  })
}

/** Starts a server with the example agents or those of the test, runs the test, and stops everything. */
export async function withStudio(
  options: {
    readonly runtime?: Partial<RuntimeOptions>
    readonly serve?: Partial<ServeOptions>
  },
  test: (kit: StudioKit) => Promise<void>,
): Promise<void> {
  const definitions = options.runtime?.agents ? {} : { registry: await exampleRegistry() }
  const runtime = await createRuntime({ ...definitions, ...options.runtime } as RuntimeOptions)
  await runtime.start()
  const serving = await serve(runtime, {
    port: 0,
    auth: 'none',
    studio: studioFiles(),
    playground: true,
    ...options.serve,
  })
  const { open, offences, close } = pagesOf(serving)
  try {
    await test({ runtime, url: serving.url, open, offences })
    if (offences.length > 0) throw new Error(`The page misbehaved:\n${offences.join('\n')}`)
  } finally {
    await close()
    await serving.close({ graceMs: 0 })
    await runtime.stop({ graceMs: 0 })
  }
}

export async function exampleRegistry(): Promise<Awaited<ReturnType<typeof discover>>> {
  process.env['SHOP_DB'] = ':memory:' // the orders of one test file are not those of another
  return discover(`${root}/examples/agents`)
}

/** Longer than a button has to have the focus before Enter decides. */
const STAY_MS = 800

/** Approves the call on the page with the keyboard: moves to the button, looks at it, presses Enter. */
export async function approveByKeys(page: Page): Promise<void> {
  await page.keyboard.press('a')
  await page.locator('[data-choice=approve]:focus:not([aria-disabled])').waitFor()
  await delay(STAY_MS)
  await page.keyboard.press('Enter')
}

/** What axe finds on a page. */
export async function violations(page: Page): Promise<string[]> {
  // Without frames one run inside the page finds everything; the usual way opens a second page for each run.
  if (page.frames().length > 1) throw new Error('The page has frames, which axe would leave out.')
  const { violations: found } = await new AxeBuilder({ page })
    .options({ resultTypes: ['violations'] })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
    .setLegacyMode()
    .analyze()
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}\n  ${failureSummary}`),
  )
}

/** Opens pages that may only ask the server of the test. */
export function pagesOf({ url }: Pick<Serving, 'url'>): Pick<StudioKit, 'open' | 'offences'> & {
  close(): Promise<void>
} {
  const contexts: BrowserContext[] = []
  const offences: string[] = []
  const origin = new URL(url).origin
  return {
    offences,
    async open(
      path = '/',
      { theme = 'light', width = 1360, height = 860, reducedMotion = 'reduce', prefix = '' } = {},
    ) {
      const context = await browser!.newContext({
        colorScheme: theme,
        reducedMotion,
        viewport: { width, height },
      })
      contexts.push(context)
      // Shorter than the time of a test, so that a failure names what was waited for.
      context.setDefaultTimeout(8000)
      const page = await context.newPage()
      page.on('request', (request) => {
        const asked = request.url()
        if (!asked.startsWith(`${origin}/`) && !/^(?:data|blob):/.test(asked))
          offences.push(`request to ${asked}`)
      })
      page.on('pageerror', (error) =>
        offences.push(`error: ${error.name} ${error.message} ${error.stack}`),
      )
      page.on('dialog', (dialog) => {
        offences.push(`dialog: ${dialog.message()}`)
        void dialog.dismiss()
      })
      page.on('console', (message) => {
        // Chromium reports lost connections and refusals of the server itself; a page cannot prevent that.
        if (message.type() === 'error' && !/Failed to load resource|ERR_/.test(message.text()))
          offences.push(`console: ${message.text()}`)
      })
      await page.goto(`${origin}${prefix}/studio${path}`)
      return page
    },
    async close() {
      await Promise.all(contexts.map((context) => context.close()))
    },
  }
}
