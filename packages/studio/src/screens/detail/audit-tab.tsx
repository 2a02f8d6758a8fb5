import type { ReactNode } from 'react'
import type { AuditExport } from '@skein/runtime'
import { ShieldAlert, ShieldCheck } from '../../icons/lucide.ts'
import { ErrorBox } from '../../parts/error-box.tsx'
import { Skeleton } from '../../parts/placeholder.tsx'
import { Time } from '../../parts/time.tsx'
import { line, plural } from '../../parts/format.ts'
import { Json } from '../../parts/json.tsx'
import { readSetting, writeSetting } from '../../state/store.ts'
import { useResource } from '../../state/resource.ts'
import { useStudio } from '../../state/studio.ts'

interface Verified {
  readonly audit: AuditExport
  readonly isSound: boolean
  readonly faults: readonly string[]
  /** Whether this log begins with exactly the lines of the log that was loaded before. */
  readonly isContinued: boolean
}

/** The audit log of the whole tree of threads, verified in the browser: every line, their order and the signature. */
export function AuditTab({ threadId }: { readonly threadId: string }): ReactNode {
  const { client } = useStudio()
  const audit = useResource(`audit ${threadId}`, async () =>
    verified(await readAudit(client, threadId)),
  )
  if (audit.error !== undefined)
    return (
      <div className="pad">
        <ErrorBox error={audit.error} retry={audit.reload} />
      </div>
    )
  if (!audit.value) return <Skeleton />
  const { isSound, faults, isContinued } = audit.value
  const { lines, publicKey } = audit.value.audit
  const Icon = isSound ? ShieldCheck : ShieldAlert
  return (
    <section>
      <p className={`verdict ${isSound ? 'good' : 'bad'}`} role="status">
        <Icon size={16} aria-hidden />
        {isSound
          ? `Verified: ${plural(lines.length, 'entry', 'entries')}, complete and in order`
          : 'Not verified'}
      </p>
      {faults.map((fault) => (
        <p key={fault} className="bad small">
          {line(fault, 300)}
        </p>
      ))}
      <p className="soft small">
        {isContinued
          ? 'It contains everything that this browser saw last time, unchanged. '
          : 'This browser remembers it from now on and will notice if it is rewritten. '}
        Checked in this browser with the key that the server sent. Compare it with the key that was
        published to you:
      </p>
      <p className="mono small hash">{line(JSON.stringify(publicKey), 300)}</p>
      <h3>Entries</h3>
      <ol className="audit">
        {lines.map((text, index) => (
          <AuditLine key={index} index={index} text={text} />
        ))}
      </ol>
    </section>
  )
}

function AuditLine({ index, text }: { readonly index: number; readonly text: string }): ReactNode {
  const entry = JSON.parse(text) as {
    readonly timestamp: string
    readonly outcome?: string
    readonly state?: string
    readonly metadata?: Readonly<Record<string, unknown>>
  }
  const data = entry.metadata?.['uaicp:data'] as { readonly tool?: string } | undefined
  return (
    <li>
      <details>
        <summary>
          <span className="faint num">{index + 1}</span>{' '}
          <span>{line(String(entry.metadata?.['uaicp:event'] ?? entry.state), 60)}</span>{' '}
          {data?.tool !== undefined && <code className="tool-ink">{line(data.tool, 60)}</code>}{' '}
          <span className="soft">{entry.outcome}</span>{' '}
          <Time at={entry.timestamp} className="soft num small" />
        </summary>
        <Json value={entry} label={`Entry ${index + 1}`} />
      </details>
    </li>
  )
}

/** The log belongs to the outermost thread. */
async function readAudit(
  client: ReturnType<typeof useStudio>['client'],
  threadId: string,
): Promise<AuditExport> {
  const { rootId } = await client.threads.get(threadId)
  return client.threads.audit(rootId)
}

async function verified(audit: AuditExport): Promise<Verified> {
  const { verifyLog } = await import('@skein/governance/audit')
  const { tree, lines, checkpoint, publicKey } = audit
  const lastCheckpoint = readSetting(`audit.${tree}`)
  const verdict = await verifyLog(lines.map((text) => `${text}\n`).join(''), {
    keys: [publicKey],
    checkpoints: [checkpoint],
    trusted: lastCheckpoint,
  })
  const isSound = verdict.ok && verdict.sealed === lines.length
  if (isSound) writeSetting(`audit.${tree}`, checkpoint)
  return {
    audit,
    isSound,
    faults: verdict.faults.map(({ index, detail }) => `Entry ${index + 1}: ${detail}`),
    isContinued: isSound && lastCheckpoint !== undefined,
  }
}
