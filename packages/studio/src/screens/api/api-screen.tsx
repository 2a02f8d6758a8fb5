import { Play, Square } from 'lucide-react'
import { useEffect, useMemo, useRef, useState, type FormEvent, type ReactNode } from 'react'
import { escapeJson, safeText } from '@skein/base/safe-text'
import { CommandLine, Copy, ErrorBox, Skeleton } from '../../parts/basics.tsx'
import { bytes, duration, line, plural } from '../../parts/format.ts'
import { Json } from '../../parts/json.tsx'
import { To } from '../../parts/link.tsx'
import { useStore } from '../../state/store.ts'
import { useMay, useResource, useStudio } from '../../state/studio.ts'
import { useTitle } from '../../state/title.ts'
import {
  curlText,
  exampleBody,
  readDocument,
  requestPath,
  resolved,
  typeText,
  type ApiDocument,
  type Operation,
  type Schema,
  type Values,
} from './openapi.ts'

/** Every operation of the server, from its OpenAPI document, with a form to try it. */
export function ApiScreen({ operation: chosen }: { readonly operation?: string }): ReactNode {
  const studio = useStudio()
  const [search, setSearch] = useState('')
  const prefix = useStore(studio.me)?.server.prefix
  const document = useResource(prefix === undefined ? undefined : 'openapi', async (signal) => {
    const response = await studio.fetch(`${studio.url}/openapi.json`, { signal })
    if (!response.ok) throw new Error(`The document was answered with ${response.status}.`)
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
  const wanted = search.trim().toLowerCase()
  const shown = operations.filter(({ id, path, summary, group }) =>
    `${id} ${path} ${summary} ${group}`.toLowerCase().includes(wanted),
  )
  const groups = [...new Set(shown.map(({ group }) => group))]
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
          {plural(shown.length, 'operation')}
        </p>
        {groups.map((group) => (
          <section key={group} aria-labelledby={`group-${group}`}>
            <h2 id={`group-${group}`}>{line(group, 40)}</h2>
            <ul>
              {shown
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
                      <code className="cut">{line(path, 120)}</code>
                    </To>
                  </li>
                ))}
            </ul>
          </section>
        ))}
        {shown.length === 0 && <p className="soft pad">No operation matches.</p>}
      </nav>
      <div className="api-main" tabIndex={0} role="region" aria-label="Operation">
        {current ? (
          <OperationView key={current.id} operation={current} document={document.value} />
        ) : (
          <Introduction count={operations.length} />
        )}
      </div>
    </div>
  )
}

function Introduction({ count }: { readonly count: number }): ReactNode {
  const { url } = useStudio()
  return (
    <div className="inner stack">
      <h2>The API of this server</h2>
      <p>
        Everything that this page shows and does goes through these {plural(count, 'operation')}.
        Choose one to see what it takes and answers, and to try it with your own rights. Programs
        send a key with every request:
      </p>
      <CommandLine text={`curl '${url}/threads' -H "authorization: Bearer $SKEIN_KEY"`} />
      <p className="soft">
        The same as a document for tools: <code>{url}/openapi.json</code> (OpenAPI 3.1).
      </p>
    </div>
  )
}

function Method({ name }: { readonly name: string }): ReactNode {
  return <span className={`api-method ${name === 'GET' ? 'reads' : 'writes'}`}>{name}</span>
}

function OperationView({
  operation,
  document: { schemas },
}: {
  readonly operation: Operation
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
        <h2>Answers</h2>
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
                    label={`Schema of the answer ${status}`}
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

/** The members of an object, one per line, and the whole schema behind a click. */
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

interface Answered {
  readonly status: number
  readonly type: string
  readonly text: string
  readonly ms: number
  /** Whether the answer is longer than what is shown. */
  readonly isCut: boolean
}

/** The maximum bytes of an answer that are read; a stream is read until the person stops it. */
const MAX_ANSWER_BYTES = 300_000

/** A form for the parameters and the body. Requests are sent with the rights of the person who is signed in. */
function TryIt({
  operation,
  schemas,
}: {
  readonly operation: Operation
  readonly schemas: ApiDocument['schemas']
}): ReactNode {
  const studio = useStudio()
  const example = useMemo(() => exampleBody(operation, schemas), [operation, schemas])
  const [values, setValues] = useState<Values>({})
  const [body, setBody] = useState(example?.text ?? '')
  const [answer, setAnswer] = useState<Answered>()
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const abort = useRef<AbortController>(undefined)
  useEffect(() => () => abort.current?.abort(), [])
  const isAllowed = useMay(operation.scope) || operation.scope === 'public'
  const { method, parameters } = operation
  const missing = parameters.filter(
    ({ in: place, name }) => place === 'path' && (values[name] ?? '') === '',
  )
  const send = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    if (missing.length > 0 || isBusy) return
    const own = (abort.current = new AbortController())
    setBusy(true)
    setError(undefined)
    setAnswer(undefined)
    const started = performance.now()
    try {
      const hasBody = example !== undefined && body !== ''
      const response = await studio.fetch(`${studio.url}${requestPath(operation, values)}`, {
        method,
        headers: hasBody ? { 'content-type': mediaTypeOf(example.mediaType) } : undefined,
        body: hasBody ? body : undefined,
        signal: own.signal,
      })
      const type = response.headers.get('content-type') ?? ''
      for await (const part of readParts(response, own.signal))
        setAnswer({
          ...part,
          status: response.status,
          type,
          ms: performance.now() - started,
        })
    } catch (failure) {
      if (!own.signal.aborted) setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <section>
      <h2>Try it</h2>
      <form className="stack" onSubmit={(event) => void send(event)}>
        {parameters.length > 0 && (
          <div className="api-params">
            {parameters.map(({ name, in: place, schema, required, description }) => (
              <label key={`${place} ${name}`}>
                <span>
                  <code>{name}</code>{' '}
                  <span className="faint small">
                    {place}
                    {required !== true && ', optional'} · {typeText(schema)}
                  </span>
                </span>
                {schema?.enum ? (
                  <select
                    className="select"
                    value={values[name] ?? ''}
                    onChange={(event) => setValues({ ...values, [name]: event.target.value })}
                  >
                    <option value="">not sent</option>
                    {schema.enum.map((one) => (
                      <option key={String(one)}>{String(one)}</option>
                    ))}
                  </select>
                ) : (
                  <input
                    className="field"
                    required={place === 'path'}
                    title={description}
                    spellCheck={false}
                    value={values[name] ?? ''}
                    onChange={(event) => setValues({ ...values, [name]: event.target.value })}
                  />
                )}
              </label>
            ))}
          </div>
        )}
        {example && (
          <label>
            <span>
              Body <code className="faint small">{example.mediaType}</code>
            </span>
            <textarea
              className="field mono"
              rows={Math.min(14, Math.max(3, body.split('\n').length))}
              spellCheck={false}
              value={body}
              onChange={(event) => setBody(event.target.value)}
            />
          </label>
        )}
        <CommandLine
          text={curlText(studio.url, operation, { values, body, mediaType: example?.mediaType })}
        />
        <div className="btns">
          <button
            className={method === 'GET' ? 'btn' : 'btn primary'}
            disabled={isBusy || !isAllowed || missing.length > 0}
          >
            <Play size={14} aria-hidden /> Send {method}
          </button>
          {isBusy && (
            <button type="button" className="btn" onClick={() => abort.current?.abort()}>
              <Square size={13} aria-hidden /> Stop
            </button>
          )}
          {!isAllowed && (
            <span className="soft">
              You do not have the scope <code>{operation.scope}</code>.
            </span>
          )}
          {isAllowed && missing.length > 0 && (
            <span className="soft">
              {missing.map(({ name }) => name).join(', ')} {missing.length === 1 ? 'is' : 'are'}{' '}
              needed.
            </span>
          )}
        </div>
      </form>
      <div aria-live="polite">
        {error !== undefined && <ErrorBox error={error} />}
        {answer && <Answer answer={answer} isOpen={isBusy} />}
      </div>
    </section>
  )
}

function mediaTypeOf(name: string): string {
  return name === '*/*' ? 'application/octet-stream' : name
}

/** Yields the part of an answer that has arrived so far, each time it grows. */
async function* readParts(
  response: Response,
  signal: AbortSignal,
): AsyncGenerator<Pick<Answered, 'text' | 'isCut'>, void> {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  yield { text, isCut: false }
  if (!reader) return
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      size += value.length
      text += decoder.decode(value, { stream: true })
      const isCut = size > MAX_ANSWER_BYTES
      yield { text, isCut }
      if (isCut || signal.aborted) return
    }
  } finally {
    await reader.cancel().catch(() => undefined) // the answer may have ended
  }
}

function Answer({
  answer: { status, type, text, ms, isCut },
  isOpen,
}: {
  readonly answer: Answered
  readonly isOpen: boolean
}): ReactNode {
  const json = !isOpen && !isCut && type.includes('json') ? parsed(text) : undefined
  return (
    <div className="stack api-result">
      <p>
        <b className={status < 400 ? 'good' : 'bad'}>{status}</b>{' '}
        <span className="soft num">
          {duration(ms)} · {bytes(text.length)}
          {isCut && ', and more that is not shown'} {type !== '' && `· ${line(type, 60)}`}
        </span>
      </p>
      {json !== undefined ? (
        <Json value={json} label="Answer" />
      ) : (
        text !== '' && (
          <div className="json-box">
            <pre className="json" tabIndex={0} aria-label="Answer">
              {type.includes('json') ? escapeJson(text) : safeText(text)}
            </pre>
            <Copy text={text} label="Copy: answer" />
          </div>
        )
      )}
    </div>
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
