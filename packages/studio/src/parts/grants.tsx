import { type ReactNode, useEffect, useState } from 'react'
import type { Client } from '@skein/server/client'
import { KeyRound } from '../icons/lucide.ts'
import { useStore } from '../state/store.ts'
import { useMay, useStudio } from '../state/studio.ts'
import { useResource } from '../state/resource.ts'
import { Dialog } from './dialog.tsx'
import { ErrorBox } from './error-box.tsx'
import { Time, useNow } from './time.tsx'
import { age, line, plural } from './format.ts'
import { To } from './link.tsx'

type StandingGrant = Awaited<ReturnType<Client['threads']['grants']['list']>>[number]

/** Shows how many tools a thread may use without asking (grants); a click opens the list of its grants. */
export function GrantsButton({
  threadId,
  version,
}: {
  readonly threadId: string
  /** A number that grows whenever a grant is made or revoked; 0 if there never was one. */
  readonly version: number
}): ReactNode {
  const { client } = useStudio()
  const now = useNow()
  const [isOpen, setOpen] = useState(false)
  const grants = useResource(version > 0 ? `grants ${threadId} ${version}` : undefined, () =>
    client.threads.grants.list(threadId),
  )
  if (version === 0) return null
  const all = grants.value ?? []
  const active = all.filter((grant) => isActive(grant, now))
  return (
    <>
      <button type="button" className="link" onClick={() => setOpen(true)}>
        {active.length === 0
          ? 'no temporary approval left'
          : `${plural(active.length, 'tool')} temporarily approved`}
      </button>
      {isOpen && (
        <Dialog title="Temporarily approved in this thread" onClose={() => setOpen(false)}>
          {grants.error !== undefined && <ErrorBox error={grants.error} retry={grants.reload} />}
          <ul className="grants">
            {all.map((grant) => (
              <GrantRow key={grant.grantId} threadId={threadId} grant={grant} now={now} />
            ))}
          </ul>
        </Dialog>
      )}
    </>
  )
}

/**
 * Shows for how many tools, over all threads, a grant is active. A click opens the list: who allowed
 * which tool in which thread until when. The list is loaded again when a thread changes.
 */
export function AllGrants(): ReactNode {
  const { client, lists } = useStudio()
  const now = useNow()
  const [isOpen, setOpen] = useState(false)
  const latest = useStore(lists.threads).items[0]
  const version = latest && `${latest.id} ${latest.seq}`
  const grants = useResource('grants', () => client.threads.grants.all())
  useEffect(() => {
    // Delayed, because threads change often, but grants seldom.
    const timer = setTimeout(grants.reload, RELOAD_MS)
    return () => clearTimeout(timer)
    // `reload` is a new function at each render.
  }, [version])
  const active = (grants.value ?? []).filter((grant) => isActive(grant, now))
  if (active.length === 0 && !isOpen) return null
  return (
    <div>
      <button type="button" className="link" onClick={() => setOpen(true)}>
        <KeyRound size={13} className="in-line" aria-hidden /> {plural(active.length, 'tool')}{' '}
        temporarily approved
      </button>
      {isOpen && (
        <Dialog title="Temporarily approved" onClose={() => setOpen(false)}>
          {grants.error !== undefined && <ErrorBox error={grants.error} retry={grants.reload} />}
          {active.length === 0 && (
            <p>No temporary approval is left: every call is asked about again.</p>
          )}
          <ul className="grants">
            {active.map((grant) => (
              <GrantRow
                key={grant.grantId}
                threadId={grant.threadId}
                grant={grant}
                now={now}
                onRevoked={grants.reload}
              >
                {' '}
                in{' '}
                <To className="link" address={{ screen: 'thread', threadId: grant.threadId }}>
                  {line(grant.title ?? 'an untitled thread', 60)}
                </To>{' '}
                of {line(grant.agent, 40)},
              </GrantRow>
            ))}
          </ul>
        </Dialog>
      )}
    </div>
  )
}

const RELOAD_MS = 500

function GrantRow({
  threadId,
  grant,
  now,
  onRevoked,
  children,
}: {
  readonly threadId: string
  readonly grant: StandingGrant
  readonly now: number
  readonly onRevoked?: () => void
  /** Names the thread of the grant, where the list shows several threads. */
  readonly children?: ReactNode
}): ReactNode {
  const { client, notify } = useStudio()
  const mayRevoke = useMay('approvals:write')
  const [error, setError] = useState<unknown>()
  const { grantId, tool, risk, by, at, expiresAt, revoked, reason } = grant
  const revoke = (): void => {
    client.threads.grants.revoke(threadId, grantId).then(() => {
      notify(`${line(tool, 40)} needs an approval again.`)
      onRevoked?.()
    }, setError)
  }
  return (
    <li>
      <div>
        <b>{line(tool, 60)}</b>
        {children}{' '}
        <span className="soft">
          {risk === 'write_high_risk' ? 'up to high risk' : 'low risk only'}
        </span>
        <p className="soft small">
          by {line(by, 60)} · <Time at={at} /> ·{' '}
          {revoked
            ? `revoked by ${line(revoked.by, 60)}`
            : isActive(grant, now)
              ? `ends in ${age(Date.parse(expiresAt) - now)}`
              : 'expired'}
          {reason !== undefined && ` · ${line(reason, 120)}`}
        </p>
        {error !== undefined && <ErrorBox error={error} />}
      </div>
      {isActive(grant, now) && mayRevoke && (
        <button type="button" className="btn no" onClick={revoke}>
          Revoke
        </button>
      )}
    </li>
  )
}

function isActive({ revoked, expiresAt }: StandingGrant, now: number): boolean {
  return revoked === undefined && Date.parse(expiresAt) > now
}
