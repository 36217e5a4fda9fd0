// The program: standard streams, or HTTP with --http 127.0.0.1:8000.
import { app } from "./app.ts";

await app.run();
