// Made by web/build.mjs.
[
    WebFile { path: "/", content_type: "text/html; charset=utf-8", gzip: include_bytes!("index.html.gz") },
    WebFile { path: "/arena", content_type: "text/html; charset=utf-8", gzip: include_bytes!("arena.html.gz") },
    WebFile { path: "/assets/arena.63d8b7b37657.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("arena.css.gz") },
    WebFile { path: "/assets/arena.PHSST3W4.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("arena.js.gz") },
    WebFile { path: "/assets/draughts.7HRF4A4I.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("draughts.js.gz") },
    WebFile { path: "/assets/draughts.ed54531ff1f7.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("draughts.css.gz") },
    WebFile { path: "/assets/parlor.79a133743364.lzma", content_type: "application/octet-stream", gzip: include_bytes!("parlor.lzma.gz") },
    WebFile { path: "/assets/play.cf73d8d275b1.css", content_type: "text/css; charset=utf-8", gzip: include_bytes!("play.css.gz") },
    WebFile { path: "/assets/play.UBV6JBA7.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("play.js.gz") },
    WebFile { path: "/assets/shared.FLAIRWI7.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("shared.js.gz") },
    WebFile { path: "/assets/shared.N2WCZ2UN.js", content_type: "text/javascript; charset=utf-8", gzip: include_bytes!("shared2.js.gz") },
    WebFile { path: "/draughts", content_type: "text/html; charset=utf-8", gzip: include_bytes!("draughts.html.gz") },
]
