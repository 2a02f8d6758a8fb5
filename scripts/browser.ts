import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { chromium } from 'playwright-core'
import type { Browser } from 'playwright-core'
import { readJson, root } from './workspace.ts'

/** Nothing leaves the machine and nothing is asked: tests see loopback pages only. */
const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

interface Executable {
  readonly path: string
  /** Shared libraries it brings along, for machines that have no desktop. */
  readonly libraries?: string
}

/** Where Linux, macOS and Windows usually have a Chrome or Chromium. */
const installed = [
  '/usr/bin/google-chrome',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
  'C:\\Program Files (x86)\\Google\\Chrome\\Application\\chrome.exe',
]

/**
 * Starts a headless browser for a test: the Chromium that npm brought, or else an installed one. The
 * caller closes it. Throws one line that says what was tried when none starts.
 */
export async function launchBrowser(): Promise<Browser> {
  const tried: string[] = []
  const candidates = [
    chromiumFromNpm,
    ...installed.map((path) => async (): Promise<Executable> => ({ path })),
  ]
  for (const candidate of candidates) {
    try {
      const { path, libraries } = await candidate()
      if (!existsSync(path)) continue
      tried.push(path)
      const env =
        libraries === undefined ? {} : { env: { ...process.env, LD_LIBRARY_PATH: libraries } }
      return await chromium.launch({ executablePath: path, args: flags, timeout: 30_000, ...env })
    } catch (error) {
      tried.push(String(error).split('\n')[0] ?? '')
    }
  }
  throw new Error(`No browser starts here; install Chrome or Chromium. Tried: ${tried.join('; ')}`)
}

/**
 * The binary inside `@sparticuz/chromium`, unpacked once per version. That package unpacks into the
 * temporary folder and takes whatever lies there, of any version and any user; so it is given a folder
 * of its own, which becomes visible under its final name only when complete.
 */
async function chromiumFromNpm(): Promise<Executable> {
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  const { version } = readJson(join(dirname(entry), '..', 'package.json')) as { version: string }
  const home = join(root, '.tmp', `chromium-${version}`)
  if (!existsSync(home)) {
    mkdirSync(join(root, '.tmp'), { recursive: true })
    const unpacking = mkdtempSync(`${home}-`)
    await unpack(unpacking, join(dirname(entry), '..', 'bin'))
    try {
      renameSync(unpacking, home)
    } catch (error) {
      rmSync(unpacking, { recursive: true, force: true })
      // Another process was faster: its copy is as good.
      if (!existsSync(home)) throw error
    }
  }
  return { path: join(home, 'chromium'), libraries: join(home, 'al2023', 'lib') }
}

async function unpack(folder: string, archives: string): Promise<void> {
  const names = ['TMPDIR', 'TMP', 'TEMP'] as const
  const before = names.map((name) => [name, process.env[name]] as const)
  for (const name of names) process.env[name] = folder
  try {
    const { default: packed, inflate } = await import('@sparticuz/chromium')
    await Promise.all([packed.executablePath(), inflate(join(archives, 'al2023.tar.br'))])
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}
