import { useState, type ReactNode } from 'react'
import { safeText } from '@skein/base/safe-text'
import { CommandLine } from '../../parts/copy.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { Skeleton } from '../../parts/placeholder.tsx'
import { curlText } from '../../parts/curl.ts'
import { line, plural } from '../../parts/format.ts'
import { Json } from '../../parts/json.tsx'
import { To } from '../../parts/link.tsx'
import { useStore } from '../../state/store.ts'
import { useNeedsKey, useStudio } from '../../state/studio.ts'
import { useResource } from '../../state/resource.ts'
import { useTitle } from '../../state/title.ts'
import {
  readDocument,
  resolved,
  typeText,
  type ApiDocument,
  type ApiOperation,
  type Schema,
} from './openapi.ts'
import { TryIt } from './try-it.tsx'

/** Every operation of the server, from its OpenAPI document, with a form to try it. */
export function ApiScreen({ operation: chosen }: { readonly operation?: string }): ReactNode {
  const studio = useStudio()
  const [search, setSearch] = useState('')
  const prefix = useStore(studio.me)?.server.prefix
  const document = useResource(prefix === undefined ? undefined : 'openapi', async (signal) => {
    const response = await studio.fetch(`${studio.url}/openapi.json`, { signal })
    if (!response.ok) throw new Error(`The server answered with ${response.status} instead of its OpenAPI document.`)
    return readDocument(await response.json(), prefix ?? '')
  })
  useTitle('API · Studio')
  if (document.error !== undefined)
    return (
      <div className="page">
        <ErrorBox error={document.error} retry={document.reload} />
      </div>
    )
  if (!document.value) return <Skeleton lines={8} />
  const { operations } = document.value
  const words = search.trim().toLowerCase()
  const matches = operations.filter(({ id, path, summary, group }) =>
    `${id} ${path} ${summary} ${group}`.toLowerCase().includes(words),
  )
  const groups = [...new Set(matches.map(({ group }) => group))]
  const current = operations.find(({ id }) => id === chosen)
  return (
    <div className={current ? 'api at-operation' : 'api'}>
      <nav className="api-list" aria-label="Operations">
        {!current && <h1 className="hidden">API</h1>}
        <label className="api-search">
          <span className="hidden">Search operations</span>
          <input
            className="field"
            type="search"
            placeholder="Search operations"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        </label>
        <p className="hidden" role="status">
          {plural(matches.length, 'operation')}
        </p>
        {groups.map((group) => (
          <section key={group} aria-labelledby={`group-${group}`}>
            <h2 id={`group-${group}`}>{line(group, 40)}</h2>
            <ul>
              {matches
                .filter((one) => one.group === group)
                .map(({ id, method, path, summary }) => (
                  <li key={id}>
                    <To
                      className="api-row"
                      address={{ screen: 'api', operation: id }}
                      replace={current !== undefined}
                      aria-current={id === chosen ? 'true' : undefined}
                      title={summary}
                    >
                      <Method name={method} />
                      <code>{line(path, 120)}</code>
                    </To>
                  </li>
                ))}
            </ul>
          </section>
        ))}
        {matches.length === 0 && <p className="soft pad">No operation matches.</p>}
      </nav>
      <div className="api-main" tabIndex={0} role="region" aria-label="Operation">
        {current ? (
          <OperationView key={current.id} operation={current} document={document.value} />
        ) : (
          <Introduction operations={operations} />
        )}
      </div>
    </div>
  )
}

/** What people look for first, by the ids of the operations. */
const FIRST_OPERATIONS = [
  'createThread',
  'sendMessage',
  'streamThread',
  'getThreadView',
  'listApprovals',
  'decide',
]

function Introduction({ operations }: { readonly operations: readonly ApiOperation[] }): ReactNode {
  const { url } = useStudio()
  const needsKey = useNeedsKey()
  const first = FIRST_OPERATIONS.flatMap((id) => operations.filter((one) => one.id === id))
  return (
    <div className="inner stack">
      <h2>The API of this server</h2>
      <p>
        Everything that this page shows and does goes through these{' '}
        {plural(operations.length, 'operation')}. Choose one to see its parameters and responses,
        and to try it with your own permissions.
        {needsKey && ' Programs send a key with every request:'}
      </p>
      <CommandLine text={curlText({ url: `${url}/threads`, needsKey })} />
      <p>
        <a className="link" href={`${url}/openapi.json`} target="_blank" rel="noopener">
          openapi.json
        </a>{' '}
        <span className="soft">describes the same operations for tools (OpenAPI 3.1).</span>
      </p>
      <h2>Where to begin</h2>
      <ul className="api-first">
        {first.map(({ id, method, path, summary }) => (
          <li key={id}>
            <To className="api-row" address={{ screen: 'api', operation: id }}>
              <Method name={method} /> <code>{line(path, 120)}</code>
            </To>
            <p className="soft small">{line(firstSentence(summary), 200)}</p>
          </li>
        ))}
      </ul>
    </div>
  )
}

function firstSentence(text: string): string {
  return text.replaceAll('`', '').replace(/(?<=\.)\s[^]*$/, '')
}

function Method({ name }: { readonly name: string }): ReactNode {
  return <span className={`api-method ${name === 'GET' ? 'reads' : 'writes'}`}>{name}</span>
}

function OperationView({
  operation,
  document: { schemas },
}: {
  readonly operation: ApiOperation
  readonly document: ApiDocument
}): ReactNode {
  const { method, path, summary, scope, id, answers, body } = operation
  const schema = Object.values(body?.content ?? {})[0]?.schema
  return (
    <article className="inner stack api-operation">
      <To className="link api-back" address={{ screen: 'api' }}>
        All operations
      </To>
      <h1>
        <Method name={method} /> <code>{line(path, 200)}</code>
      </h1>
      <p>{summary}</p>
      <p className="soft small">
        <code>{id}</code>
        {scope === 'public' ? (
          ' · needs no key'
        ) : (
          <>
            {' '}
            · needs the scope <code>{scope}</code>
          </>
        )}
      </p>
      <TryIt operation={operation} schemas={schemas} />
      {schema && (
        <section>
          <h2>Body</h2>
          <Fields schema={schema} schemas={schemas} label="Schema of the body" />
        </section>
      )}
      <section>
        <h2>Responses</h2>
        {answers.map(({ status, description, content }) => (
          <details key={status} className="api-answer" open={status.startsWith('2')}>
            <summary>
              <b className={Number(status) < 400 ? 'good' : 'bad'}>{status}</b>{' '}
              <span className="soft">{line(description.replaceAll('`', ''), 200)}</span>
            </summary>
            {Object.entries(content).map(([mediaType, media]) => (
              <div key={mediaType} className="stack">
                <p className="soft small">
                  <code>{mediaType}</code> {media.schema && typeText(media.schema)}
                </p>
                {media.schema && mediaType.includes('json') && Number(status) < 400 && (
                  <Fields
                    schema={media.schema}
                    schemas={schemas}
                    label={`Schema of the response ${status}`}
                  />
                )}
              </div>
            ))}
          </details>
        ))}
      </section>
    </article>
  )
}

/** The properties of an object schema, one per line; a click shows the whole schema. */
function Fields({
  schema,
  schemas,
  label,
}: {
  readonly schema: Schema
  readonly schemas: ApiDocument['schemas']
  readonly label: string
}): ReactNode {
  const whole = resolved(schema, schemas)
  const forms = (whole.anyOf ?? whole.oneOf ?? [whole]).map((one) => resolved(one, schemas))
  return (
    <div className="stack">
      {forms.map((form, index) => {
        const members = Object.entries(form.properties ?? {})
        if (members.length === 0) return null
        return (
          <table key={index} className="api-fields">
            <caption className="hidden">
              {label}
              {forms.length > 1 && `, form ${index + 1}`}
            </caption>
            <tbody>
              {members.map(([name, member]) => (
                <tr key={name}>
                  <th scope="row">
                    <code>{name}</code>
                    {!form.required?.includes(name) && <span className="faint"> optional</span>}
                  </th>
                  <td>
                    <span className="soft">{typeText(member)}</span>{' '}
                    {member.description !== undefined && safeText(member.description)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )
      })}
      <details>
        <summary className="soft small">JSON Schema</summary>
        <Json value={whole} label={label} />
      </details>
    </div>
  )
}
