import { describe, expect, test } from 'vitest'
import { COMMANDS, isGroup } from '../src/commands.ts'
import { commandHelp } from '../src/main.ts'
import { skein, tempFolder } from './kit.ts'

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
