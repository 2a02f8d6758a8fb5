import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { badAgents, type Ended, skein, startDev, tempFolder } from './kit.ts'
import { threadIn } from './summary.ts'

/** A machine with other work takes its time to start processes. */
const timeout = 60_000

describe('approvals from a terminal', { timeout }, () => {
  test('a grant of a tool holds in its thread until it is revoked', async () => {
    const cwd = tempFolder()
    await startDev([], { cwd })
    const run = (text: string, ...args: string[]): Promise<Ended> =>
      skein(['run', 'refunds', text, ...args], { cwd })
    const thread = threadIn((await run('Refund O-7')).stderr)
    const approve = ['approve', thread, '--yes', '--grant-for', '1h', '--follow']
    expect((await skein(approve, { cwd })).code).toBe(0)
    const again = await run('Refund O-8', '--thread', thread)
    expect(again.code).toBe(0)
    expect(again.stdout).toContain('Done: ')
    const listed = await skein(['grant', 'list', thread], { cwd })
    expect(listed.stdout).toMatch(/^[\w-]{36} +refund +active +by \S+ until \S+Z$/m)
    const grantId = listed.stdout.slice(0, 36)
    const all = await skein(['grant', 'list'], { cwd })
    expect(all.stdout).toMatch(
      new RegExp(`^${thread} +${grantId} +refund +active +by \\S+ until \\S+Z`),
    )
    const found = await skein(['thread', 'list', '--tool', 'refund'], { cwd })
    expect(found.stdout).toMatch(new RegExp(`^${thread.slice(-8)} `))
    expect((await skein(['thread', 'list', '--tool', 'nothing'], { cwd })).stdout).toBe('')
    const revoked = await skein(['grant', 'revoke', thread, grantId.slice(-8)], { cwd })
    expect(revoked).toMatchObject({ code: 0, stdout: '' })
    expect((await skein(['grant', 'list', '--json'], { cwd })).stdout).toContain('"grants":[]')
    expect((await run('Refund O-7', '--thread', thread)).code).toBe(3)
    const made = await skein(['grant', 'make', thread, 'refund', '--for', '30m', '--json'], { cwd })
    expect(JSON.parse(made.stdout)).toMatchObject({ tool: 'refund', status: 'active' })
    const [endless, long, unknown] = await Promise.all([
      skein(['grant', 'make', thread, 'refund'], { cwd }),
      skein(['grant', 'make', thread, 'refund', '--for', '48h'], { cwd }),
      skein(['grant', 'make', thread, 'nothing', '--for', '1h'], { cwd }),
    ])
    expect(endless).toMatchObject({ code: 2 })
    expect(long).toMatchObject({ code: 1 })
    expect(unknown.stderr).toContain('has no tool "nothing"')
  })

  test('a call is approved with other arguments, and only these run', async () => {
    const cwd = tempFolder()
    const thread = threadIn((await skein(['run', 'refunds', 'Refund O-7'], { cwd })).stderr)
    const wrong = await skein(['approve', thread, '--yes', '--with', '{"order":"O-7"}'], { cwd })
    expect(wrong.code).toBe(1)
    expect(wrong.stderr).toContain('amount')
    const changed = '{"order":"O-7","amount":20}'
    const approved = await skein(['approve', thread, '--yes', '--with', changed], { cwd })
    expect(approved.stderr).toContain(`approved: refund ${changed}`)
    expect(approved.code).toBe(0)
    const { stdout } = await skein(['thread', 'show', thread], { cwd })
    expect(stdout).toContain(`calls refund ${changed}`)
    expect(stdout).toMatch(/error "The call was refused: APPROVAL_DENIED/)
  })

  test('a call in doubt is settled; what a person found absent needs a new approval', async () => {
    const cwd = tempFolder()
    const args = ['--folder', badAgents]
    const thread = threadIn((await skein(['run', 'payer', 'Pay.', ...args], { cwd })).stderr)
    const env = { SKEIN_TEST_DIES: '1' }
    expect((await skein(['approve', thread, '--yes', ...args], { cwd, env })).code).toBe(null)
    // The next process that works on the store finds the call, and asks.
    await skein(['run', 'payer', 'Hello.', ...args], { cwd })
    const shown = await skein(['thread', 'show', thread, ...args], { cwd })
    expect(shown.stderr).toContain('in doubt')
    expect(shown.stderr).toContain(`skein settle ${thread} `)
    const listed = await skein(['inbox', ...args], { cwd })
    expect(listed.stdout).toContain('(in_doubt, write_high_risk')
    const denied = await skein(['deny', thread, '--reason', 'No', ...args], { cwd })
    expect(denied.stderr).toContain('No call that waits for approval matches')
    const unsaid = await skein(['settle', thread, '--found', 'perhaps', ...args], { cwd })
    expect(unsaid).toMatchObject({ code: 2 })
    expect(unsaid.stderr).toContain('applied, absent, unknown')

    const settled = await skein(['settle', thread, '--found', 'absent', ...args], { cwd })
    expect(settled.stderr).toContain('settled: pay {}')
    expect(settled.stderr).toContain(`skein approve ${thread} `)
    expect(settled.code).toBe(3)
    expect(existsSync(join(cwd, 'paid.txt'))).toBe(false)
    const approved = await skein(['approve', thread, '--yes', ...args], { cwd })
    expect(approved).toMatchObject({ code: 0, stdout: 'Done.\n' })
    expect(readFileSync(join(cwd, 'paid.txt'), 'utf8')).toBe('bob\n')
  })

  test('without a terminal, approve refuses unless --yes or the digest of the call says so', async () => {
    const cwd = tempFolder()
    const thread = threadIn((await skein(['run', 'refunds', 'Refund O-7'], { cwd })).stderr)
    const refused = await skein(['approve', thread], { cwd })
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain(
      'Nothing was decided about refund {"order":"O-7","amount":25}: without a terminal',
    )
    const listed = (await skein(['inbox'], { cwd })).stdout
    const digest = /digest ([0-9a-f]{12})/.exec(listed)![1]!
    expect(refused.stderr).toContain(`--digest ${digest}`)
    for (const wrong of ['0123456789ab', digest.slice(0, 7), '']) {
      const other = await skein(['approve', thread, '--digest', wrong], { cwd })
      expect(other.code).toBe(1)
      expect(other.stderr).toContain('DIGEST_DIFFERS')
    }
    expect((await skein(['inbox'], { cwd })).stdout).toContain(digest)
    const approved = await skein(['approve', thread, '--digest', digest], { cwd })
    expect(approved.code).toBe(0)
    expect(approved.stderr).toContain('approved: refund {"order":"O-7","amount":25}')
  })

  test('a thread is renamed, and deleted only by someone who says so', async () => {
    const cwd = tempFolder()
    const thread = threadIn((await skein(['run', 'refunds', 'Refund O-7'], { cwd })).stderr)
    const renamed = await skein(['thread', 'rename', thread, 'The lamp'], { cwd })
    expect(renamed).toMatchObject({ code: 0 })
    expect((await skein(['thread', 'list'], { cwd })).stdout).toContain('The lamp')
    expect((await skein(['thread', 'rename', thread, ' '], { cwd })).code).toBe(2)
    const refused = await skein(['thread', 'delete', thread], { cwd })
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('was not deleted: without a terminal there is no one to ask')
    expect((await skein(['thread', 'list'], { cwd })).stdout).toContain(thread.slice(-8))
    expect((await skein(['thread', 'delete', thread, '--yes'], { cwd })).code).toBe(0)
    expect((await skein(['thread', 'list'], { cwd })).stdout).toBe('')
    expect((await skein(['inbox'], { cwd })).stdout).toBe('')
  })
})
