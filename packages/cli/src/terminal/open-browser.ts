import { spawn } from 'node:child_process'
import type { Output } from './output.ts'

/** The program of each system that opens an address in the browser of the person. */
const OPENERS: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}

/** Opens an address in the browser. Where that does not work, the address is on the screen anyway. */
export function openBrowser(url: string, output: Pick<Output, 'say'>): void {
  const [program, ...args] = OPENERS[process.platform] ?? ['xdg-open']
  const opener = spawn(program, [...args, url], { stdio: 'ignore', detached: true })
  opener.once('error', () => output.say(`No browser could be opened. Open ${url} yourself.`))
  opener.unref()
}
