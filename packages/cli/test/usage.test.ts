import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { COMMANDS, isGroup } from '../src/commands.ts'
import { commandHelp } from '../src/main.ts'
import { ownEnv, skein, skeinBin, tempFolder } from './kit.ts'
import { pty } from './terminal/terminal.ts'

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
    expect(help).not.toContain('-v,') // it is the version, of `skein` alone
    expect(help).not.toMatch(/docs\/\w+\.md/) // no file of the repository: users do not have it
  })

  test('-h after a command shows its help', async () => {
    const { code, stdout } = await skein(['thread', 'show', '-h'], { cwd: tempFolder() })
    expect(code).toBe(0)
    expect(stdout).toContain('Usage: skein thread show <thread> [flags]')
  })

  // What people type who know other commands, or who forget something; each answer says what to type instead.
  test.each<{ args: readonly string[]; says: string; code?: number }>([
    { args: ['thraed'], says: 'Did you mean `skein thread`?' },
    { args: ['threads'], says: 'Did you mean `skein thread`?' },
    { args: ['thread', 'lst'], says: 'Did you mean `skein thread list`?' },
    { args: ['fly'], says: 'Commands: dev, studio, run, chat' },
    { args: ['list'], says: 'Did you mean `skein thread list`?' },
    { args: ['fork', 'x'], says: 'Did you mean `skein thread fork`?' },
    { args: ['ls'], says: 'Did you mean `skein thread list`?' },
    { args: ['logs'], says: 'Did you mean `skein thread tail`?' },
    { args: ['start'], says: 'Did you mean `skein dev`?' },
    { args: ['deploy'], says: 'Did you mean `skein serve`?' },
    { args: ['init'], says: 'Did you mean `npm create skein`?' },
    { args: ['new', 'shop'], says: 'Did you mean `npm create skein`?' },
    { args: ['ask', 'support', 'Hi'], says: 'Did you mean `skein run`?' },
    { args: ['version'], says: 'Did you mean `skein --version`?' },
    { args: ['help', 'rnu'], says: 'Did you mean `skein run`?' },
    { args: ['--json', 'run'], says: 'Flags come after the command: skein run … --json' },
    { args: ['--jsn'], says: 'Flags come after the command: skein <command> … --jsn' },
    { args: ['run'], says: '<agent> is missing.\nE.g.: skein run support "Where is order O-7?"' },
    { args: ['run', 'support'], says: '<text> is empty.' },
    {
      args: ['run', 'Where is order O-7?'],
      says: 'Name the agent first: skein run <agent> "Where is order O-7?"',
    },
    { args: ['run', 'support', 'Hi', '--jsn'], says: 'Did you mean --json?' },
    {
      args: ['run', '--agent', 'x', 'Hi'],
      says: 'Give it without a flag: skein run <agent> [text]',
    },
    { args: ['run', 'support', 'Hi', '-x'], says: 'Its flags: --thread, --if-busy, --json, ' },
    { args: ['run', 'support', 'Hi', '-v'], says: '`run` has no flag -v.' },
    {
      args: ['run', 'support', 'Hi', 'there'],
      says: '"there" is one argument too many. Put words that belong together in quotes: "Hi there".',
    },
    { args: ['run', 'support', 'Hi', '--timeout', 'soon'], says: 'E.g. 500ms, 30s, 5m.' },
    {
      args: ['run', 'support', 'Hi', '--timeout'],
      says: 'Write one after it: --timeout <time>',
    },
    {
      args: ['run', 'support', 'Hi', '--timeout', '--json'],
      says: 'Write one after it: --timeout <time>',
    },
    { args: ['run', 'support', 'Hi', '--json=yes'], says: '--json takes no value.' },
    { args: ['run', 'support', 'Hi', '--if-busy', 'cut'], says: 'Give --thread, and one of' },
    { args: ['approve', 'x', '--with', '[1]'], says: '--with takes a JSON object.' },
    { args: ['deny', 'x'], says: 'Give it with --reason.' },
    { args: ['dev', '--port', 'http'], says: '--port takes a number' },
    { args: ['dev', '--port', '99999'], says: '--port takes a number from 0 to 65535' },
    { args: ['thread', 'show'], says: 'E.g.: skein thread show' },
    { args: ['thread', 'list', '--limit', 'ten'], says: '--limit takes a number from 1 to 1000' },
    { args: ['thread', 'export', 'x', '--format', 'pdf'], says: '--format is jsonl or thread' },
    { args: ['completion', 'powershell'], says: 'Shells: bash, zsh, fish.' },
    { args: ['api', '/threads'], says: 'Name the method first: skein api GET /threads' },
    { args: ['api', 'get', 'threads'], says: 'Write it with a slash: skein api GET /threads' },
    { args: ['run', 'x', 'y', '--url', 'localhost:1'], says: 'Write it as http://127.0.0.1:4111.' },
    // What is typed rightly, and does not exist.
    { args: ['run', 'suport', 'Hi'], says: 'did you mean "support"?', code: 1 },
    {
      args: ['run', 'x', 'y', '--folder', 'no'],
      says: 'Name a folder that holds agents/',
      code: 1,
    },
    { args: ['run', 'x', 'y', '--thread', 'no'], says: '`skein thread list` lists', code: 1 },
    { args: ['approve', 'x'], says: '`skein inbox` lists the calls that wait', code: 1 },
    { args: ['thread', 'import', 'no'], says: '`-` reads standard input.', code: 1 },
    { args: ['restore', 'no.gz'], says: 'The file does not exist.', code: 1 },
  ])('$args is refused: $says', async ({ args, says, code: wanted = 2 }) => {
    const { code, stdout, stderr } = await skein(args, { cwd: tempFolder() })
    expect(stderr).toContain(says)
    expect({ code, stdout }).toEqual({ code: wanted, stdout: '' })
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
      `The server at http://127.0.0.1:${port}/api is not a Skein server (status 404). [NOT_SKEIN]`,
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
    const { cwd, env, script } = await withCompletion('bash')
    const complete = (...words: string[]): string => {
      const list = words.map((word) => `'${word}'`).join(' ')
      const text = `source ${script}\nCOMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _skein; echo "\${COMPREPLY[@]}"`
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
  })

  test('completion loaded by fish', async ({ skip }) => {
    skip(!has('fish'), 'fish is not installed')
    const { cwd, env, script } = await withCompletion('fish')
    const complete = (line: string): string[] => {
      const text = `source ${script}; complete -C '${line}'`
      const printed = execFileSync('fish', ['--no-config', '-c', text], {
        cwd,
        env,
        encoding: 'utf8',
      })
      return printed.split('\n').map((candidate) => candidate.split('\t')[0] ?? '')
    }
    expect(complete('skein do')).toEqual(['doctor', ''])
    expect(complete('skein thread fo')).toEqual(['fork', ''])
    expect(complete('skein thread list --a')).toEqual(['--agent', '--all', ''])
    expect(complete('skein chat refu')).toEqual(['refunds', ''])
  })

  test('completion loaded by zsh', async ({ skip }) => {
    skip(!has('zsh'), 'zsh is not installed')
    if (typeof pty === 'string') return skip(pty)
    const { cwd, env, script } = await withCompletion('zsh')
    const shell = pty.spawn('zsh', ['-f', '-i'], { cwd, env })
    let shown = ''
    let tell = (): void => undefined
    shell.onData((text) => {
      shown += text
      tell()
    })
    const until = async (wanted: string): Promise<void> => {
      while (!shown.includes(wanted)) await new Promise<void>((resolve) => (tell = resolve))
    }
    try {
      shell.write(`source ${script}; echo ready$((1 + 1))\r`)
      await until('ready2')
      for (const [line, whole] of [
        ['skein do', 'skein doctor'],
        ['skein thread fo', 'skein thread fork'],
        ['skein chat refu', 'skein chat refunds'],
      ]) {
        shell.write(`${line}\t`)
        await until(whole!)
        expect(shown).toContain(whole)
        shell.write('\u0015') // empties the line
      }
    } finally {
      shell.kill('SIGKILL')
    }
  })
})

function has(shell: string): boolean {
  return spawnSync(shell, ['--version'], { stdio: 'ignore' }).error === undefined
}

/** A folder with the command on the path of its own environment, and a script of completion. */
async function withCompletion(
  shell: string,
): Promise<{ readonly cwd: string; readonly env: NodeJS.ProcessEnv; readonly script: string }> {
  const cwd = tempFolder()
  const { stdout } = await skein(['completion', shell], { cwd })
  const script = join(cwd, 'completion')
  writeFileSync(script, stdout)
  const command = `#!/bin/sh\nexec "${process.execPath}" "${skeinBin}" "$@"\n`
  writeFileSync(join(cwd, 'skein'), command, { mode: 0o755 })
  const env = { ...ownEnv(), HOME: cwd, PATH: `${cwd}:${process.env['PATH']}`, TERM: 'xterm' }
  return { cwd, env, script }
}
