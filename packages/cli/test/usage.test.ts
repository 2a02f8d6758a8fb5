import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { COMMANDS, isGroup } from '../src/commands.ts'
import { commandHelp } from '../src/main.ts'
import { ownEnv, skein, skeinBin, tempFolder } from './kit.ts'

const leaves = Object.entries(COMMANDS).flatMap(([noun, entry]) =>
  isGroup(entry)
    ? Object.entries(entry.verbs).map(([verb, leaf]) => ({ name: `${noun} ${verb}`, leaf }))
    : [{ name: noun, leaf: entry }],
)

describe('usage', { timeout: 60_000 }, () => {
  test('--help lists every command, on standard output', async () => {
    const { code, stdout, stderr } = await skein(['--help'], { cwd: tempFolder() })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const noun of Object.keys(COMMANDS)) expect(stdout).toContain(`  ${noun} `)
  })

  test.each(leaves)('`$name` has help with two examples of itself', async ({ name, leaf }) => {
    const command = await leaf.load()
    const help = commandHelp(name, leaf.summary, command)
    expect(help).toContain(`Usage: skein ${name}`)
    expect(command.examples).toHaveLength(2)
    for (const example of command.examples) expect(example).toContain(`skein ${name}`)
    for (const flag of Object.keys(command.options)) expect(help).toContain(`--${flag}`)
  })

  test('-h after a command shows its help', async () => {
    const { code, stdout } = await skein(['thread', 'show', '-h'], { cwd: tempFolder() })
    expect(code).toBe(0)
    expect(stdout).toContain('Usage: skein thread show <thread> [flags]')
  })

  test.each([
    { args: ['thraed'], says: 'Did you mean `skein thread`?' },
    { args: ['thread', 'lst'], says: 'Did you mean `skein thread list`?' },
    { args: ['fly'], says: 'Commands: dev, run, chat' },
    { args: ['run'], says: '<agent> is missing.' },
    { args: ['run', 'support'], says: '<text> is empty.' },
    { args: ['run', 'support', 'Hi', '--jsn'], says: 'Did you mean --json?' },
    { args: ['run', 'support', 'Hi', 'there'], says: '"there" is one word too many.' },
    { args: ['run', 'support', 'Hi', '--timeout', 'soon'], says: 'E.g. 500ms, 30s, 5m.' },
    { args: ['run', 'support', 'Hi', '--if-busy', 'cut'], says: 'Give --thread, and one of' },
    { args: ['approve', 'x', '--with', '[1]'], says: '--with takes a JSON object.' },
    { args: ['deny', 'x'], says: 'Give it with --reason.' },
    { args: ['dev', '--port', 'http'], says: '--port takes a number' },
  ])('$args is refused with 2: $says', async ({ args, says }) => {
    const { code, stdout, stderr } = await skein(args, { cwd: tempFolder() })
    expect(stderr).toContain(says)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })
})

describe('the words around commands', { timeout: 60_000 }, () => {
  test('`help X` is `X --help`, also for a group and a verb; -v is the version', async () => {
    const cwd = tempFolder()
    const [run, list, group, version] = await Promise.all(
      [['help', 'run'], ['help', 'thread', 'list'], ['help', 'thread'], ['-v']].map((args) =>
        skein(args, { cwd }),
      ),
    )
    expect(run!.stdout).toContain('Usage: skein run <agent> [text] [flags]')
    expect(list!.stdout).toContain('Usage: skein thread list [flags]')
    expect(group!.stdout).toContain('Usage: skein thread <command> [flags]')
    expect(version!.stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    const wrong = await skein(['help', 'rnu'], { cwd })
    expect(wrong).toMatchObject({ code: 2, stdout: '' })
    expect(wrong.stderr).toContain('Did you mean `skein run`?')
  })

  test('an address that does not answer, or is not of Skein, is named, without its password', async () => {
    const cwd = tempFolder()
    const other = createServer((_, response) => response.writeHead(404).end('<html>'))
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as AddressInfo
    const [dead, foreign, wrong] = await Promise.all([
      skein(['thread', 'list', '--url', 'http://user:canary@127.0.0.1:1'], { cwd }),
      skein(['thread', 'list', '--url', `http://127.0.0.1:${port}/api`], { cwd }),
      skein(['thread', 'list', '--url', 'localhost'], { cwd }),
    ])
    other.close()
    expect(dead.stderr).toContain('No server answers at http://127.0.0.1:1. [NOT_REACHED]')
    expect(dead.stderr).not.toContain('canary')
    expect(foreign.stderr).toContain(
      `What answers at http://127.0.0.1:${port}/api is not a server of Skein (status 404). [NOT_SKEIN]`,
    )
    expect(wrong).toMatchObject({ code: 2 })
    expect(wrong.stderr).toContain('Write it as http://127.0.0.1:4111.')
  })

  test('api sends a request to any operation, and its exit code is that of the answer', async () => {
    const cwd = tempFolder()
    const found = await skein(['api', 'get', '/agents'], { cwd })
    expect(JSON.parse(found.stdout)).toHaveProperty('agents')
    const body = '{"agent":"support"}'
    const made = await skein(['api', 'POST', '/threads', '--data', '-'], { cwd, input: body })
    expect(JSON.parse(made.stdout)).toHaveProperty('id')
    const missing = await skein(['api', 'GET', '/nowhere'], { cwd })
    expect(missing).toMatchObject({ code: 1, stderr: 'GET /nowhere: 404\n' })
    expect(JSON.parse(missing.stdout)).toHaveProperty('error.code', 'ROUTE_NOT_FOUND')
    expect((await skein(['api', 'FETCH', '/x'], { cwd })).code).toBe(2)
    expect((await skein(['api', 'GET', 'threads'], { cwd })).code).toBe(2)
  })

  test('completion in bash: commands, verbs, flags, agents', async () => {
    const cwd = tempFolder()
    const { stdout: script } = await skein(['completion', 'bash'], { cwd })
    const bin = join(cwd, 'skein')
    writeFileSync(bin, `#!/bin/sh\nexec "${process.execPath}" "${skeinBin}" "$@"\n`, {
      mode: 0o755,
    })
    const complete = (...words: string[]): string => {
      const list = words.map((word) => `'${word}'`).join(' ')
      const text = `${script}\nCOMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _skein; echo "\${COMPREPLY[@]}"`
      const env = { ...ownEnv(), PATH: `${cwd}:${process.env['PATH']}` }
      return execFileSync('bash', ['-c', text], { cwd, env, encoding: 'utf8' }).trim()
    }
    expect(complete('skein', 'dea')).toBe('')
    expect(complete('skein', 'do')).toBe('doctor')
    expect(complete('skein', 'thread', 'fo')).toBe('fork')
    expect(complete('skein', 'thread', 'list', '--a')).toBe('--agent --all')
    expect(complete('skein', 'chat', 'refu')).toBe('refunds')
  })

  test.each(['zsh', 'fish'])('completion in %s names every command', async (shell) => {
    const { stdout } = await skein(['completion', shell], { cwd: tempFolder() })
    for (const { name } of leaves)
      for (const word of name.split(' ')) expect(stdout).toContain(word)
    expect((await skein(['completion', 'tcsh'], { cwd: tempFolder() })).code).toBe(2)
  })
})
