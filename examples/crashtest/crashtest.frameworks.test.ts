/**
 * Runs `skein crashtest` on a refund agent in five frameworks, twice, and prints what it found with the versions. What each
 * program does to survive a crash is in its first comment. Nothing is expected of the others but that the result is the same
 * twice; of Skein, that nothing is doubled or lost.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { peersOf } from '../../scripts/peers.ts'
import { root } from '../../scripts/workspace.ts'

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command on a program of this folder, in a copy without the files that earlier runs may have left. */
function crashtest(program: string, args: readonly string[]): Promise<Ended> {
  const parent = mkdtempSync(join(tmpdir(), 'skein-example-'))
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }))
  const cwd = join(parent, 'crashtest')
  cpSync(import.meta.dirname, cwd, { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(parent, 'node_modules'))
  const bin = join(root, 'packages', 'cli', 'bin', 'skein.js')
  const words = [bin, 'crashtest', program, '--model-script', 'script.json', '--world', 'bank.ts']
  const keys = Object.keys(process.env).filter((name) =>
    /_API_KEY$|^VITEST|^NODE_OPTIONS$/.test(name),
  )
  const env = { ...process.env, ...Object.fromEntries(keys.map((name) => [name, undefined])) }
  return new Promise((resolve) => {
    execFile(process.execPath, [...words, ...args], { cwd, env }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
    )
  })
}

function versionOf(name: string): string {
  if (name !== '@skein/runtime') return peersOf('frameworks').version(name)
  const file = join(root, 'packages', 'runtime', 'package.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

const programs = [
  { program: 'ai-sdk.ts', name: 'ai', args: [] },
  { program: 'langgraph.ts', name: '@langchain/langgraph', args: [] },
  { program: 'mastra.ts', name: '@mastra/core', args: [] },
  { program: 'openai-agents.ts', name: '@openai/agents', args: [] },
  { program: 'skein.ts', name: '@skein/runtime', args: ['--max-points', '20', '--jobs', '2'] },
  {
    program: 'skein.ts',
    name: '@skein/runtime',
    args: ['no-probe', '--held-code', '3', '--max-points', '20', '--jobs', '2'],
  },
]

test.for(programs)(
  '$program $args gives the same result twice',
  { timeout: 400_000 },
  async ({ program, name, args }) => {
    const first = await crashtest(program, args)
    const title = [program, args.includes('no-probe') && 'no-probe'].filter(Boolean).join(' ')
    console.log(`${title}, ${name} ${versionOf(name)}\n${first.stdout}${first.stderr}`)
    expect(first.stderr).toBe('')
    expect(first.stdout).toMatch(/^effect .*\n(?:.*\n)+\d+ crashes: /)
    if (name === '@skein/runtime') {
      expect(first.stdout).toContain('0 doubled, 0 lost')
      expect(first.code).toBe(0)
    }
    expect(await crashtest(program, args)).toEqual(first)
  },
)
