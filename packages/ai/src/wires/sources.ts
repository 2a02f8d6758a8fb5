import type { JsonValue } from '@skein/base'
import type { Source } from '../contract/turn.ts'
import { listOf, objectOf, textOf } from './read-json.ts'

/**
 * Makes a source of a vendor's citation. `place` is a web address, or the id of a document or file; without
 * it the citation names no source, and the list is empty.
 */
export function toSources(original: JsonValue, place: unknown, title: unknown): Source[] {
  const at = typeof place === 'number' ? String(place) : textOf(place)
  if (at === undefined) return []
  const originals = [original]
  const origin = /^https?:/i.test(at)
    ? { type: 'url' as const, url: at, originals }
    : { type: 'document' as const, id: at, originals }
  const name = textOf(title)
  return [name === undefined ? origin : { ...origin, title: name }]
}

/**
 * Reads the annotations of OpenAI's formats. Responses has the fields in the annotation, Chat Completions in
 * an object named like its type. Annotations that cite nothing (`file_path`, parsed files) are no sources.
 */
export function annotationSources(annotations: JsonValue | undefined): Source[] {
  return listOf(annotations).flatMap((value) => {
    const annotation = objectOf(value) ?? {}
    const type = textOf(annotation['type']) ?? ''
    if (!type.endsWith('_citation')) return []
    const { url, file_id, document_id, title, filename } = objectOf(annotation[type]) ?? annotation
    return toSources(value, url ?? file_id ?? document_id, title ?? filename)
  })
}
