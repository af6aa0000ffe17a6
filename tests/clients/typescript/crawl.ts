// Reads every page of a running registry through types that are generated from its contract.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const client = createClient<paths>({ baseUrl: process.argv[2] });

async function companies(): Promise<number> {
  let seen = 0;
  for (let page = 1; ; page++) {
    const { data, error } = await client.GET("/api/v1/companies", { params: { query: { page, pageSize: 17 } } });
    if (error) throw new Error(error.error.message);
    for (const { id, name } of data.data) {
      const bundle = await client.GET("/api/v1/companies/{slug}", { params: { path: { slug: id } } });
      if (bundle.error) throw new Error(bundle.error.error.hint);
      if (bundle.data.data.company.name !== name) throw new Error(`another name for ${id}`);
      seen++;
    }
    if (page >= data.pagination.pageCount) return seen;
  }
}

async function people(): Promise<number> {
  let seen = 0;
  for (let page = 1; ; page++) {
    const { data, error } = await client.GET("/api/v1/people", { params: { query: { page, pageSize: 17 } } });
    if (error) throw new Error(error.error.message);
    for (const { slug } of data.data) {
      const detail = await client.GET("/api/v1/people/{slug}", { params: { path: { slug } } });
      if (detail.error) throw new Error(detail.error.error.hint);
      seen++;
    }
    if (page >= data.pagination.pageCount) return seen;
  }
}

async function frameworks(): Promise<number> {
  const { data, error } = await client.GET("/api/v1/frameworks", { params: { query: {} } });
  if (error) throw new Error(error.error.message);
  for (const { frameworkId } of data.data) {
    const detail = await client.GET("/api/v1/frameworks/{frameworkId}", { params: { path: { frameworkId } } });
    if (detail.error) throw new Error(detail.error.error.hint);
  }
  return data.data.length;
}

console.log(JSON.stringify({ companies: await companies(), people: await people(), frameworks: await frameworks() }));
